import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  // RFC 2181 §10.3 forbids such records, which are common.
  title: 'follows the alias of an MX host',
  hosts: { mx: {} },
  zone: () => ({ '@': { MX: ['10 alias'] }, alias: { CNAME: ['mx'] } }),
  messages: { ada: { attempts: [delivered('alias dot 250')], status: 'delivered' } },
  connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;
