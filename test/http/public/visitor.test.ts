import { describe, expect, it } from 'vitest';
import { visitorOf } from '../../../src/http/public/visitor.ts';

const seen = (userAgent: string | undefined, more: Record<string, string> = {}, isHead = false) => {
  const { isBot, isProxy } = visitorOf({ 'user-agent': userAgent, ...more }, '192.0.2.1', isHead);
  return [isBot ? 'bot' : 'person', isProxy ? 'proxy' : ''].join(' ').trim();
};

describe('visitorOf', () => {
  it.each([
    [
      'person',
      'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/140.0.0.0 Safari/537.36',
    ],
    [
      'person',
      'Mozilla/5.0 (iPhone; CPU iPhone OS 18_1 like Mac OS X) AppleWebKit/605.1.15 (KHTML, like Gecko) Mobile/15E148',
    ],
    ['person', 'Mozilla/5.0 (X11; Linux x86_64; rv:128.0) Gecko/20100101 Thunderbird/128.4.0'],
    ['person', 'Microsoft Office/16.0 (Windows NT 10.0; Microsoft Outlook 16.0.17928; Pro)'],
    ['person', 'Mozilla/4.0 (compatible; MSIE 7.0; Windows NT 10.0; Win64; x64; Microsoft Outlook 16.0)'],
    ['person', 'Outlook-Android/2.0'],
    ['person', 'Outlook-iOS/709.2189947.prod.iphone (3.24.1)'],
    [
      'person proxy',
      'Mozilla/5.0 (Windows NT 5.1; rv:11.0) Gecko Firefox/11.0 (via ggpht.com GoogleImageProxy)',
    ],
    ['person proxy', 'YahooMailProxy; https://help.yahoo.com/kb/yahoo-mail-proxy-SLN28749.html'],
    ['person proxy', 'Mozilla/5.0'],
    [
      'person proxy',
      'Mozilla/5.0 (Windows NT 10.0; Win64; x64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/42.0.2311.135 Safari/537.36 Edge/12.246 Mozilla/5.0',
    ],
    ['bot proxy', 'Barracuda Sentinel (EE)'],
    ['bot proxy', 'Mozilla/5.0 (compatible; Proofpoint URL Defense)'],
    ['bot proxy', 'Mimecast URL Protect'],
    ['bot', 'Mozilla/5.0 (compatible; Googlebot/2.1; +http://www.google.com/bot.html)'],
    ['bot', 'Slackbot-LinkExpanding 1.0 (+https://api.slack.com/robots)'],
    ['person', 'curl/8.5.0'],
    ['person', 'node'],
    ['bot', 'python-requests/2.32.3'],
    [
      'bot',
      'Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) HeadlessChrome/140.0.0.0 Safari/537.36',
    ],
    ['bot', ''],
    ['bot', undefined],
  ])('%s: %s', (who, userAgent) => {
    expect(seen(userAgent)).toBe(who);
  });

  it('treats HEAD and prefetch requests as those of bots', () => {
    const browser = 'Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0';
    expect(seen(browser)).toBe('person');
    expect(seen(browser, {}, true)).toBe('bot');
    expect(seen(browser, { 'sec-purpose': 'prefetch;prerender' })).toBe('bot');
    expect(seen(browser, { purpose: 'prefetch' })).toBe('bot');
    expect(seen(browser, { 'x-moz': 'prefetch' })).toBe('bot');
  });

  it('truncates the User-Agent', () => {
    expect(visitorOf({ 'user-agent': 'x'.repeat(5000) }, '', false).userAgent).toHaveLength(500);
  });
});
