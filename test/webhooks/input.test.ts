import { describe, expect, it } from 'vitest';
import { isRefusal } from '../../src/core/refusal.ts';
import { webhookEvents, webhookName, webhookUrl } from '../../src/webhooks/input.ts';

describe('the URL of a webhook', () => {
  it.each([
    ['https://example.com/hooks'],
    ['http://example.com'],
    ['https://example.com:8443/a/b?c=d&e=%2F'],
    ['http://localhost:3000/hooks'],
    ['http://10.0.0.5/hooks'],
    ['http://[::1]:8080/'],
    ['https://xn--bcher-kva.example/'],
    [`https://example.com/${'x'.repeat(2028)}`],
  ])('can be %s', (url) => {
    expect(webhookUrl(url, true)).toBe(url);
  });

  it.each([
    ['', 'such as'],
    ['example.com/hooks', 'such as'],
    ['ftp://example.com/', 'http'],
    ['javascript:alert(1)', 'http'],
    ['file:///etc/passwd', 'http'],
    ['https://user@example.com/', 'user name'],
    ['https://user:secret@example.com/', 'user name'],
    ['https://:secret@example.com/', 'user name'],
    ['https://exa mple.com/', 'such as'],
    ['https://example.com/a\nb', 'such as'],
    ['https://example.com/\u0000', 'such as'],
    [`https://example.com/${'x'.repeat(2029)}`, '2048'],
    ['http://169.254.169.254/latest/meta-data/', 'may not be called'],
    ['http://[fe80::1]/', 'may not be called'],
    ['http://[::ffff:169.254.169.254]/', 'may not be called'],
    // The same address as one number, in hex, in octal.
    ['http://2852039166/', 'may not be called'],
    ['http://0xa9.0xfe.0xa9.0xfe/', 'may not be called'],
    ['http://0251.0376.0251.0376/', 'may not be called'],
    ['http://100.100.100.200/', 'may not be called'],
  ])('cannot be %s', (url, reason) => {
    const refused = webhookUrl(url, true);
    expect(isRefusal(refused) && refused.message).toContain(reason);
  });

  it.each(['http://10.0.0.5/', 'http://127.0.0.1/', 'http://2130706433/', 'http://[::1]/', 'http://0/'])(
    'cannot be %s where private networks are not allowed',
    (url) => {
      expect(isRefusal(webhookUrl(url, false))).toBe(true);
      expect(isRefusal(webhookUrl(url, true))).toBe(false);
    },
  );
});

describe('the events to which a webhook subscribes', () => {
  it.each([
    ['*', ['*']],
    ['email_sent', ['email_sent']],
    [['*'], ['*']],
    [
      ['email_sent', 'domain_failed'],
      ['email_sent', 'domain_failed'],
    ],
    [['email_sent', 'email_sent'], ['email_sent']],
    [['email_sent', '*'], ['*']],
  ])('are parsed from %j', (input, events) => {
    expect(webhookEvents(input)).toEqual(events);
  });

  it.each([[[]], [['email_sent', 'email_read']], ['everything'], [['']]])('cannot be %j', (input) => {
    expect(isRefusal(webhookEvents(input))).toBe(true);
  });
});

describe('the name of a webhook', () => {
  it.each([
    ['its own', 'Shop', 'A description', 'Shop'],
    ['its description', undefined, 'A description', 'A description'],
    ['the beginning of a long one', undefined, 'é'.repeat(300), 'é'.repeat(100)],
    ['the host of its address', undefined, null, 'example.com:8443'],
  ])('is %s', (_, name, description, expected) => {
    expect(webhookName(name, description, 'https://example.com:8443/hooks')).toBe(expected);
  });
});
