import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  // RFC 5321 §5.1: implicit MX
  title: 'uses the address of a domain without MX records',
  hosts: { mx: {} },
  zone: (address) => ({ '@': { MX: 'NODATA', A: [address('mx')] } }),
  messages: { ada: { attempts: [delivered('no-mx.example dot 250')], status: 'delivered' } },
  connections: { mx: ['EHLO MAIL RCPT DATA . QUIT'] },
} satisfies Scenario;
