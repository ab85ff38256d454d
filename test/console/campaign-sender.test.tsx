import { expect, it } from 'vitest';
import { marketingDomain } from '../../src/console/pages/campaigns/sender.ts';

const transactional = { domain: 'shop.test', useCase: 'tx' };
const marketing = { domain: 'shop.test', useCase: 'mk' };

it.each([
  ['the one for marketing mail, if both exist', [transactional, marketing], marketing],
  ['the one for transactional mail, if there is no other', [transactional], transactional],
  ['none, if no domain has the name', [{ ...marketing, domain: 'other.test' }], undefined],
])('the domain of a sender is %s', (_, domains, found) =>
  expect(marketingDomain(domains, 'shop.test')).toBe(found),
);
