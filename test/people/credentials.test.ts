import { describe, expect, it } from 'vitest';
import { systemRandom } from '../../src/core/random.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import { createSeal } from '../../src/core/seal.ts';
import {
  createPasswordCredentials,
  matchTotp,
  totpAddress,
  totpCode,
  totpStep,
} from '../../src/people/credentials.ts';
import { newPerson } from '../../src/people/person.ts';
import { createSessions, type Session } from '../../src/people/sessions.ts';
import { granted } from '../support/refusal.ts';
import { startStore } from '../support/store.ts';

/** Attempts with a wrong password for the person ada@example.com and others. */
function start() {
  const { tables, writer, clock, ids } = startStore();
  let hashes = 0;
  const credentials = createPasswordCredentials(
    { tables, writer, clock, random: systemRandom, seal: createSeal(Buffer.alloc(32), systemRandom) },
    {
      passwords: {
        hash: async () => {
          hashes++;
          return 'hash';
        },
        verify: async () => {
          hashes++;
          return false;
        },
      },
      clientOf: (address) => address,
    },
  );
  tables.people.insert(newPerson('person_1', 'ada@example.com', 'Ada', clock.now()));
  const sessions = createSessions({
    tables,
    writer,
    clock,
    ids,
    seal: createSeal(Buffer.alloc(32), systemRandom),
  });
  const attempt = async (email: string, client: string, session?: Session) => {
    const verified = await credentials.verify({ email, client, session, password: 'a wrong password' });
    return isRefusal(verified) ? verified.code : verified;
  };
  const signIn = async (): Promise<Session> => {
    const { token } = granted(await sessions.open('person_1', 'link', { userAgent: '', address: '' }));
    const session = sessions.find(token);
    if (session === null) throw new Error('the session was not opened');
    return session;
  };
  return { tables, writer, credentials, signIn, attempt, clock, hashes: () => hashes };
}

it('counts the attempts for a person, whatever number of other addresses is attempted', async () => {
  const { attempt } = start();
  for (let times = 0; times < 10; times++)
    expect(await attempt('ada@example.com', '192.0.2.1')).toBe('wrong');
  for (let number = 0; number < 10_001; number++)
    await attempt(`nobody${number}@example.com`, `client ${number}`);
  expect(await attempt('ADA@example.com', '192.0.2.2')).toBe('RATE_LIMITED');
});

it('counts the attempts of clients that the person has used, and of sessions, separately', async () => {
  const { attempt, signIn, tables, clock } = start();
  tables.auditRecords.insert({
    recorded_at: clock.now(),
    person_id: 'person_1',
    person_email: 'ada@example.com',
    account_id: null,
    operation: 'console.signIn',
    target: '{}',
    outcome: 'done',
    detail: '',
    remote_address: '192.0.2.7',
  });
  const session = await signIn();
  for (let number = 0; number < 20; number++) await attempt('ada@example.com', `client ${number}`);
  expect(await attempt('ada@example.com', '192.0.2.1')).toBe('RATE_LIMITED');
  for (let times = 0; times < 10; times++) {
    expect(await attempt('ada@example.com', '192.0.2.7')).toBe('wrong');
    expect(await attempt('ada@example.com', '192.0.2.1', session)).toBe('wrong');
  }
  expect(await attempt('ada@example.com', '192.0.2.7')).toBe('RATE_LIMITED');
  expect(await attempt('ada@example.com', '192.0.2.1', session)).toBe('RATE_LIMITED');
});

it('computes 60 hashes for a client, then one in two seconds', async () => {
  const { attempt, clock, hashes } = start();
  for (let number = 0; number < 100; number++) await attempt(`nobody${number}@example.com`, '192.0.2.1');
  expect(hashes()).toBe(60);
  expect(await attempt('ada@example.com', '192.0.2.1')).toBe('RATE_LIMITED');
  expect(await attempt('ada@example.com', '192.0.2.2')).toBe('wrong');
  clock.advance(2000);
  expect(await attempt('ada@example.com', '192.0.2.1')).toBe('wrong');
});

it('changes a password five times, then once a minute', async () => {
  const { credentials, signIn, clock, hashes } = start();
  const session = await signIn();
  const change = async () => {
    const refusal = await credentials.setPassword(session, 'correct horse battery');
    return refusal?.code ?? 'changed';
  };
  for (let times = 0; times < 5; times++) expect(await change()).toBe('changed');
  for (let times = 0; times < 20; times++) expect(await change()).toBe('RATE_LIMITED');
  expect(hashes()).toBe(5);
  clock.advance(60_000);
  expect(await change()).toBe('changed');
});

const SECRET = Buffer.from('12345678901234567890');

describe('one-time codes', () => {
  // RFC 6238, appendix B: SHA-1, the last six of eight digits.
  it.each([
    [59, '287082'],
    [1111111109, '081804'],
    [1111111111, '050471'],
    [1234567890, '005924'],
    [2000000000, '279037'],
    [20000000000, '353130'],
  ])('at %i s is %s, as in RFC 6238', (seconds, code) => {
    expect(totpCode(SECRET, totpStep(seconds * 1000))).toBe(code);
  });

  it('are accepted one step early or late, with spaces, and not two', () => {
    const now = 1111111109_000;
    const step = totpStep(now);
    expect(matchTotp(SECRET, '081 804', now, 0)).toBe(step);
    expect(matchTotp(SECRET, '081804', now - 30_000, 0)).toBe(step);
    expect(matchTotp(SECRET, '081804', now + 30_000, 0)).toBe(step);
    expect(matchTotp(SECRET, '081804', now - 60_000, 0)).toBeNull();
    expect(matchTotp(SECRET, '081804', now + 60_000, 0)).toBeNull();
  });

  it('are accepted once', () => {
    const now = 1111111109_000;
    expect(matchTotp(SECRET, '081804', now, totpStep(now))).toBeNull();
  });

  it.each(['', '0818', '081804x', '٠٨١٨٠٤', '0818040'])('reject %j', (code) => {
    expect(matchTotp(SECRET, code, 1111111109_000, 0)).toBeNull();
  });
});

it('the address for authenticator applications encodes the mail address', () => {
  expect(totpAddress(SECRET, 'a+b@example.com', 'Postrider')).toBe(
    'otpauth://totp/Postrider%3Aa%2Bb%40example.com?secret=GEZDGNBVGY3TQOJQGEZDGNBVGY3TQOJQ&issuer=Postrider',
  );
});
