import { describe, expect, it } from 'vitest';
import type { SentMail } from '../../../src/mail/sent-mail.ts';
import { BROWSER, FORM, type PublicRig, startPublic } from './rig.ts';

const path = ({ tokens }: PublicRig, mail: SentMail) => `/r/${tokens.of('acct_one').reportUrl(mail)}`;
const report = (rig: PublicRig, mail: SentMail, body = 'reason=never_asked') =>
  rig.call(path(rig, mail), { method: 'POST', headers: FORM, body });

/** A delivered message and the data in its links. */
async function delivered(rig: PublicRig, useCase: 'tx' | 'mk', more: { simulated?: 1 } = {}) {
  const { message, mail } = rig.sent({ use_case: useCase, ...more });
  await rig.deliver(message);
  return { message, mail };
}

describe('the report page', () => {
  it.each(['GET', 'HEAD'])('records nothing by %s', async (method) => {
    const rig = await startPublic();
    const { mail } = await delivered(rig, 'mk');
    expect((await rig.call(path(rig, mail), { method })).status).toBe(200);
    expect(rig.events()).toEqual([]);
  });

  it('has a form with one button', async () => {
    const rig = await startPublic();
    const { body } = await rig.call(path(rig, (await delivered(rig, 'mk')).mail));
    expect(body.match(/<button/g)).toHaveLength(1);
    expect(body.match(/type="radio"/g)).toHaveLength(4);
  });

  it('records one complaint', async () => {
    const rig = await startPublic();
    const { message, mail } = await delivered(rig, 'mk');
    expect((await report(rig, mail, 'reason=fraud')).body).toContain('Your report was recorded.');
    expect((await report(rig, mail)).body).toContain('You have already reported this mail.');
    expect(rig.events()).toMatchObject([
      {
        event: 'email_complained',
        source: 'report_link',
        feedbackType: 'abuse',
        reportReason: 'fraud',
        messageId: message.message_id,
        ip: '127.0.0.1',
        userAgent: BROWSER,
        suppressed: true,
      },
    ]);
    expect(rig.tables.messages.bySeq(message.seq)?.status).toBe('complained');
    expect(rig.suppressions(mail)).toEqual(['complaint mk']);
  });

  it('never blocks transactional mail', async () => {
    const rig = await startPublic();
    const { mail } = await delivered(rig, 'tx');
    expect((await report(rig, mail)).body).toContain('does not block messages about your orders');
    expect(rig.suppressions(mail)).toEqual(['complaint mk']);
  });

  it.each(['', 'reason=', 'reason=%00', 'List-Unsubscribe=One-Click'])(
    'records %j as reason other',
    async (body) => {
      const rig = await startPublic();
      await report(rig, (await delivered(rig, 'mk')).mail, body);
      expect(rig.events()).toMatchObject([{ event: 'email_complained', reportReason: 'other' }]);
    },
  );

  it('works once for a purged mail', async () => {
    const rig = await startPublic();
    const { mail } = await delivered(rig, 'mk');
    const purged = { ...mail, messageId: 'msg_1500000000000_abcdefghijkl' };
    await report(rig, purged);
    await report(rig, purged);
    expect(rig.suppressions(mail)).toEqual(['complaint mk']);
    expect(rig.events()).toMatchObject([
      {
        event: 'email_complained',
        source: 'report_link',
        contactIdentifier: mail.recipientHash,
        suppressed: true,
      },
    ]);
  });

  it('adds no suppression for simulated mail', async () => {
    const rig = await startPublic();
    const { mail } = await delivered(rig, 'mk', { simulated: 1 });
    await report(rig, mail);
    await report(rig, { ...mail, messageId: 'msg_1500000000000_abcdefghijkl' });
    expect(rig.suppressions(mail)).toEqual([]);
  });

  it('rejects tokens for other purposes', async () => {
    const rig = await startPublic();
    const { message, mail } = await delivered(rig, 'mk');
    const good = rig.tokens.of('acct_one').reportUrl(mail);
    for (const token of [
      good.slice(1),
      good.slice(0, -2),
      rig.tokens.of('acct_one').unsubscribeUrl(mail),
      message.message_id,
    ]) {
      const answer = await rig.call(`/r/${token}`, { method: 'POST', headers: FORM, body: 'reason=fraud' });
      expect(answer.status).toBe(404);
    }
    expect(rig.events()).toEqual([]);
  });
});
