import { expect, it } from 'vitest';
import { DAY, HOUR } from '../../../src/core/clock.ts';
import { KNOWN_PROVIDERS } from '../../../src/mail/providers.ts';
import { openConnection } from '../../../src/store/database/connection.ts';
import { hourlyCountTable } from '../../../src/store/messages/hourly-counts.ts';
import { knownMigrations } from '../../../src/store/migrate/migrations.ts';
import { reputationCountTable } from '../../../src/store/reputation/reputation-counts.ts';

const TODAY = Date.UTC(2026, 0, 15);

it('the migration counts the last days by provider, from the counts by hour', () => {
  const [first, second] = knownMigrations();
  const db = openConnection(':memory:', {});
  db.exec(first?.sql ?? '');
  const hours = hourlyCountTable(db);
  const count = (
    ago: number,
    provider: string,
    outcome: 'accepted' | 'delivered' | 'deferred' | 'bounced' | 'opened',
    outcomeClass = '',
  ) => {
    const of = { accountId: 'acct_one', domainId: 'domain_one', stream: 'tx', provider } as const;
    hours.add({ ...of, hour: TODAY - ago * DAY + 3 * HOUR, outcome, outcomeClass }, 2);
    hours.add({ ...of, hour: TODAY - ago * DAY + 4 * HOUR, outcome, outcomeClass });
  };
  db.exec('BEGIN');
  for (const provider of KNOWN_PROVIDERS) count(0, provider, 'accepted');
  count(0, 'small.example', 'accepted');
  count(0, 'tiny.example', 'delivered');
  for (const outcomeClass of ['invalid-recipient', 'mailbox-full', 'spam-block'])
    count(1, 'Google', 'bounced', outcomeClass);
  count(1, 'Google', 'deferred', 'greylisted');
  count(1, 'Google', 'deferred', 'reputation-block');
  count(1, 'Google', 'opened');
  count(200, 'Google', 'accepted');
  hours.endUnit(true);
  hours.write();
  db.exec('COMMIT');

  db.exec(second?.sql ?? '');
  const rows = (ago: number) =>
    reputationCountTable(db)
      .ofDay(TODAY - ago * DAY, 'acct_one')
      .map(({ day: _day, accountId: _account, ...row }) => row);
  expect(rows(0).map(({ provider, volume }) => [provider, volume])).toEqual(
    [...KNOWN_PROVIDERS, 'other'].toSorted((a, b) => (a < b ? -1 : 1)).map((name) => [name, 3]),
  );
  expect(rows(1)).toEqual([
    {
      domainId: 'domain_one',
      source: '',
      provider: 'Google',
      volume: 0,
      delivered: 0,
      deferred: 3,
      hardBounced: 3,
      softBounced: 3,
      blocked: 6,
      complained: 0,
      unsubscribed: 0,
      opened: 3,
      clicked: 0,
    },
  ]);
  expect(rows(200)).toEqual([]);
  db.close();
});
