/**
 * A rough text of an HTML notice: tags taken off, block ends become line ends, the few entities that matter
 * decoded. One pass, for reading addresses and replies, not for showing to anyone.
 */
export function htmlToLines(html: string): string {
  const out: string[] = [];
  let at = 0;
  let hiddenUntil = '';
  while (at < html.length) {
    const open = html.indexOf('<', at);
    const text = html.slice(at, open < 0 ? undefined : open);
    if (hiddenUntil === '') out.push(decodeEntities(text.replaceAll(/\s+/g, ' ')));
    if (open < 0) break;
    const close = html.indexOf('>', open);
    if (close < 0) break;
    const tag = html.slice(open + 1, Math.min(close, open + 21)).toLowerCase();
    const name = /^\/?[a-z][a-z0-9]{0,15}/.exec(tag)?.[0] ?? '';
    if (hiddenUntil === '') {
      if (name === 'style' || name === 'script') hiddenUntil = `/${name}`;
      else if (BREAKING.has(name.replace('/', ''))) out.push('\n');
      // An address in brackets that nobody escaped.
      else if (tag.includes('@')) out.push(html.slice(open, close + 1));
    } else if (name === hiddenUntil) hiddenUntil = '';
    at = close + 1;
  }
  return out.join('');
}

const BREAKING = new Set([
  'br',
  'p',
  'div',
  'tr',
  'td',
  'li',
  'table',
  'pre',
  'hr',
  'h1',
  'h2',
  'h3',
  'h4',
  'blockquote',
]);

const ENTITIES: Record<string, string> = {
  lt: '<',
  gt: '>',
  amp: '&',
  quot: '"',
  nbsp: ' ',
  apos: "'",
  '#39': "'",
  '#64': '@',
};

function decodeEntities(text: string): string {
  return text.replaceAll(
    /&(#?[a-z0-9]{1,8});/gi,
    (whole, name: string) => ENTITIES[name.toLowerCase()] ?? whole,
  );
}
