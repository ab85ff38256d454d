import { expect, it } from 'vitest';
import { MINUTE } from '../../src/core/clock.ts';
import { createChallenges } from '../../src/people/passkeys.ts';
import { heldClock } from '../support/store.ts';

function start() {
  const clock = heldClock();
  const challenges = createChallenges(clock);
  return {
    clock,
    create: (purpose: string) => Buffer.from(challenges.create(purpose)).toString('base64url'),
    use: challenges.use,
  };
}

it('is valid once, for its purpose', () => {
  const { create, use } = start();
  const challenge = create('sign in');
  expect(use(challenge, 'session_1')).toBe(false);
  expect(use(challenge, 'sign in')).toBe(true);
  expect(use(challenge, 'sign in')).toBe(false);
  // The decoder ignores other characters.
  expect(use(`${challenge}=`, 'sign in')).toBe(false);
});

it('is valid for five minutes', () => {
  const { clock, create, use } = start();
  const [first, second] = [create('sign in'), create('sign in')];
  clock.advance(5 * MINUTE - 1);
  expect(use(first, 'sign in')).toBe(true);
  clock.advance(1);
  expect(use(second, 'sign in')).toBe(false);
});

it('is still valid after requests for many others', () => {
  const { create, use } = start();
  const challenge = create('sign in');
  for (let number = 0; number < 20_000; number++) create('sign in');
  expect(use(challenge, 'sign in')).toBe(true);
});

it.each(['', 'AAAA', 'A'.repeat(75)])('is not valid when it was not created here: "%s"', (challenge) => {
  expect(start().use(challenge, 'sign in')).toBe(false);
});

it('is not valid for another daemon, or after a restart', () => {
  expect(start().use(start().create('sign in'), 'sign in')).toBe(false);
});
