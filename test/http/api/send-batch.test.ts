import { expect, it, onTestFinished } from 'vitest';
import { createLog } from '../../../src/core/log.ts';
import { sendBatchRoutes } from '../../../src/http/api/sending/send-batch.ts';
import type { Acceptance, AcceptRequest } from '../../../src/sending/accept.ts';
import { heldClock, insertAccount, startStore } from '../../support/store.ts';
import { startApi } from '../harness.ts';

/** Batches while the database fails for some of their messages. */
it('reports each message for itself when the database fails in the course of a batch', async () => {
  const full = Object.assign(new Error('database or disk is full'), { code: 'SQLITE_FULL' });
  let accepted = 0;
  const { tables, clock } = startStore(heldClock(1));
  const log = createLog({ level: 'silent', hashAddresses: true });
  const acceptance: Acceptance = {
    accept: async ({ body }: AcceptRequest) => {
      if (body.subject === 'full') throw full;
      if (body.subject === 'broken') throw new Error('secret detail');
      accepted++;
      return { kind: 'replayed', status: 200, body: '{"success":true}' };
    },
  };
  const api = await startApi({ routes: sendBatchRoutes({ log, tables }, { acceptance }) });
  insertAccount(tables, api.account.accountId, clock.now());
  onTestFinished(() => api.stop());
  const subjects = [...Array<string>(40).fill('one'), 'full', 'broken', 'two'];
  const response = await fetch(`${api.base}/transactional/send-batch`, {
    method: 'POST',
    headers: { ...api.as('transactional'), 'Content-Type': 'application/json' },
    body: JSON.stringify({
      messages: subjects.map((subject) => ({ from: 'a@a.example', to: 'b@b.example', subject, html: 'x' })),
    }),
  });
  const text = await response.text();
  expect(response.status, text).toBe(200);
  expect(text).not.toContain('secret');
  expect(accepted).toBe(41);
  expect(JSON.parse(text).data).toMatchObject({
    accepted: 41,
    refused: 2,
    results: [
      ...Array.from({ length: 40 }, () => ({ success: true })),
      {
        success: false,
        reasonCode: 'UNAVAILABLE',
        message: 'The request was not processed: the disk is full',
        error: { retryAfter: 10 },
      },
      { success: false, reasonCode: 'INTERNAL_ERROR' },
      { success: true },
    ],
  });
});
