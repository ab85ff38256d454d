import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  // RFC 5321 §5.1: the target of the alias is used in place of the original name.
  title: 'follows the chain of aliases of a domain to its MX hosts',
  hosts: { mx: {} },
  zone: () => ({ shop: { CNAME: ['store'] }, store: { CNAME: ['@'] } }),
  messages: { ada: { subdomain: 'shop', attempts: [delivered('mx dot 250')], status: 'delivered' } },
  connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;
