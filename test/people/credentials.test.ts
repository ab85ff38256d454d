import { expect, it } from 'vitest';
import { systemRandom } from '../../src/core/random.ts';
import { isRefusal } from '../../src/core/refusal.ts';
import { createSeal } from '../../src/core/seal.ts';
import { createPasswordCredentials } from '../../src/people/credentials.ts';
import { newPerson } from '../../src/people/person.ts';
import { startStore } from '../support/store.ts';

it('counts the attempts for a person, whatever number of other addresses is attempted', async () => {
  const { tables, writer, clock } = startStore();
  const credentials = createPasswordCredentials({
    tables,
    writer,
    clock,
    random: systemRandom,
    seal: createSeal(Buffer.alloc(32), systemRandom),
    passwords: { hash: async () => '', verify: async () => false },
  });
  tables.people.insert(newPerson('person_1', 'ada@example.com', 'Ada', clock.now()));
  const attempt = async (email: string) => {
    const verified = await credentials.verify({ email, password: 'a wrong password' });
    return isRefusal(verified) ? verified.code : verified;
  };
  for (let times = 0; times < 10; times++) expect(await attempt('ada@example.com')).toBe('wrong');
  for (let number = 0; number < 10_001; number++) await attempt(`nobody${number}@example.com`);
  expect(await attempt('ADA@example.com')).toBe('RATE_LIMITED');
});
