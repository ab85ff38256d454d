// Runs in the pages of attacks.test.ts: what a page of an attacker, or injected text, attempts.
globalThis.attacks = {
  /** Sends a form, as any page may. */
  form(action, enctype) {
    const form = document.createElement('form');
    Object.assign(form, { method: 'POST', action, enctype });
    form.append(Object.assign(document.createElement('input'), { name: '{"a":"', value: '"}' }));
    document.body.append(form);
    form.submit();
  },

  /** Changes and reads with the cookies of the person; a result for each attempt. */
  async requests(url, account) {
    const attempt = async (path, init) => {
      try {
        const response = await fetch(url + path, { credentials: 'include', ...init });
        return `${response.type} ${await response.text()}`;
      } catch {
        return 'failed';
      }
    };
    const headers = { 'X-Postrider-Console': '1', 'X-Id': account };
    const path = '/console/api/web-setup/templates';
    return [
      await attempt(path, { method: 'POST', mode: 'no-cors', body: '{}' }),
      await attempt(path, { method: 'POST', headers, body: '{}' }),
      await attempt('/console/session', { method: 'DELETE', headers }),
      await attempt('/console/api/web-setup/messages', { headers }),
      await attempt('/console/session', {}),
      await attempt('/console/session', { mode: 'no-cors' }),
    ];
  },

  /** What the application itself does. */
  async change(account, pageToken) {
    const headers = {
      'X-Postrider-Page-Token': pageToken,
       'X-Postrider-Console': '1', 'X-Id': account, 'Content-Type': 'application/json' };
    const response = await fetch('/console/api/web-setup/templates', { method: 'POST', headers, body: '{}' });
    return response.status;
  },

  events(url) {
    return new Promise((resolve) => {
      const source = new EventSource(url, { withCredentials: true });
      source.addEventListener('hello', () => resolve('opened'));
      source.addEventListener('error', () => resolve('refused'));
    });
  },

  frame(url) {
    const frame = Object.assign(document.createElement('iframe'), { src: url });
    document.body.append(frame);
    return new Promise((resolve) => frame.addEventListener('load', () => resolve('loaded')));
  },

  open(url) {
    globalThis.opened = globalThis.open(url);
  },

  /** Inserts text with code; returns which code ran. */
  async inject() {
    const found = [];
    globalThis.ran = (what) => found.push(what);
    document.body.innerHTML = '<img src="x" onerror="ran(\'handler\')"><a href="javascript:ran(\'link\')">a</a>';
    document.querySelector('a').click();
    document.body.append(Object.assign(document.createElement('script'), { text: "ran('script')" }));
    await new Promise((resolve) => setTimeout(resolve, 200));
    return found;
  },

  /** Loads everything from another origin; a result for each attempt. */
  async load(url) {
    const insert = (element) =>
      new Promise((resolve) => {
        element.addEventListener('load', () => resolve('loaded'));
        element.addEventListener('error', () => resolve('blocked'));
        document.head.append(element);
      });
    return [
      await insert(Object.assign(document.createElement('img'), { src: `${url}image` })),
      await insert(Object.assign(document.createElement('script'), { src: `${url}script.js` })),
      await insert(Object.assign(document.createElement('link'), { rel: 'stylesheet', href: `${url}a.css` })),
      await fetch(`${url}data`).then(
        () => 'loaded',
        () => 'blocked',
      ),
    ];
  },
};
