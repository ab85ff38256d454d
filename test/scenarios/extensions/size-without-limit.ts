import { delivered } from '../support/attempts.ts';
import type { Scenario } from '../support/scenario.ts';

export default {
  title: 'treats SIZE 0, and SIZE without a number, as no limit',
  hosts: { mx: { keywords: ['SIZE 0'] }, mx2: { keywords: ['SIZE'] } },
  zone: () => ({ one: { MX: ['10 mx'] }, two: { MX: ['10 mx2'] } }),
  messages: {
    ada: { subdomain: 'one', attempts: [delivered('mx dot 250')], status: 'delivered' },
    bob: { subdomain: 'two', attempts: [delivered('mx2 dot 250')], status: 'delivered' },
  },
} satisfies Scenario;
