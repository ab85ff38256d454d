import { describe, expect, it } from 'vitest';
import type { SharedContent } from '../../src/mail/shared-content.ts';
import { packContent } from '../../src/mail/stored-content.ts';
import { enqueue } from '../support/store.ts';
import { createTestDelivery, users } from './setup.ts';

const SHARED: SharedContent = {
  from: { name: 'News', address: 'news@example.com' },
  fromDomain: 'example.com',
  replyTo: null,
  list: { id: 'sgroup_1', name: 'News' },
  subject: { first: 0, holes: [0], texts: ['Hello ', ''] },
  html: { first: 1, holes: [0], texts: ['<p>Dear ', `</p>${'<p>A row of many</p>'.repeat(100)}`] },
  text: null,
};

describe('copies of a campaign', () => {
  it('are sent by both worker threads with their values, and the shared content is read once', async () => {
    const { delivery, tables, clock, sink, db } = await createTestDelivery();
    let reads = 0;
    const { get } = tables.sharedContents;
    tables.sharedContents.get = (id) => {
      reads++;
      return get(id);
    };
    const recipients = users(12);
    db.transaction(() => {
      const key = { campaignSeq: 1, digest: Buffer.alloc(32) };
      const sharedId = tables.sharedContents.findOrInsert(
        key,
        packContent(JSON.stringify(SHARED)),
        clock.now(),
      );
      for (const recipient of recipients) {
        const own = packContent(JSON.stringify({ name: '', values: [recipient, `<b>${recipient}</b>`] }));
        const content_id = tables.messages.insertContent({ ...own, sharedId }, clock.now());
        enqueue(tables, clock.now(), { recipient, content_id, use_case: 'mk' });
      }
      tables.sharedContents.addCopies(sharedId, recipients.length);
    })();
    delivery.start();
    await expect.poll(() => sink.count).toBe(recipients.length);
    for (const { to, raw } of sink.messages) {
      const [recipient = ''] = [to].flat();
      expect(recipients).toContain(recipient);
      expect(raw).toContain(`Subject: Hello ${recipient}\r\n`);
      expect(raw).toContain(`<p>Dear <b>${recipient}</b></p>`);
    }
    expect(reads).toBe(1);
  });
});
