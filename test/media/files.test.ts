import { describe, expect, it } from 'vitest';
import { createMediaFiles } from '../../src/media/files.ts';
import { ReadRejected } from '../../src/store/database/failure.ts';
import type { DescribedMedia } from '../../src/store/media.ts';
import { createLocalReader } from '../../src/store/readers/reads.ts';
import { startStore } from '../support/store.ts';

const MIB = 2 ** 20;

/** An image of `size` stated bytes; its content has one. */
function image(contentSeq: number, size: number, accountId = 'acct_one'): DescribedMedia {
  return {
    seq: contentSeq,
    media_id: `media_${contentSeq}`,
    account_id: accountId,
    content_seq: contentSeq,
    link: 'x'.repeat(43),
    name: 'a',
    alt: '',
    created_at: 0,
    updated_at: 0,
    type: 'image/png',
    width: 1,
    height: 1,
    frames: 1,
    size,
    digest: String(contentSeq),
  };
}

/** Files whose reads wait for `finish`. */
function start() {
  const { tables } = startStore();
  const reads: { resolve(body: ArrayBuffer | null): void; reject(error: Error): void }[] = [];
  const reader = {
    ...createLocalReader(tables),
    table: () => new Promise<never>((resolve, reject) => reads.push({ resolve: resolve as never, reject })),
  };
  return { reads, files: createMediaFiles({ tables, reader }) };
}

async function opened(file: ReturnType<ReturnType<typeof createMediaFiles>['open']>) {
  const found = await file;
  if (found === null || found === 'busy') throw new Error('is not open');
  return found;
}

describe('images that are being sent', () => {
  it('are counted from the beginning of the read, and leave bytes to other accounts', async () => {
    const { files, reads } = start();
    const first = files.open(image(1, 100 * MIB));
    expect(await files.open(image(2, 100 * MIB))).toBe('busy');
    const other = files.open(image(3, 50 * MIB, 'acct_two'));
    expect(reads).toHaveLength(2);
    for (const { resolve } of reads) resolve(new ArrayBuffer(1));
    const file = await opened(first);
    await opened(other);
    file.close();
    file.close();
    void files.open(image(2, 100 * MIB));
    expect(reads).toHaveLength(3);
  });

  it('are read once for all responses, and released with the last one', async () => {
    const { files, reads } = start();
    const both = [files.open(image(1, 100 * MIB)), files.open(image(1, 100 * MIB))];
    expect(reads).toHaveLength(1);
    reads[0]?.resolve(new ArrayBuffer(1));
    const [one, two] = await Promise.all(both.map(opened));
    expect(one?.bytes).toBe(two?.bytes);
    one?.close();
    expect(await files.open(image(2, 100 * MIB))).toBe('busy');
    two?.close();
    void files.open(image(2, 100 * MIB));
    expect(reads).toHaveLength(2);
  });

  it.each([
    ['cannot be read now', new ReadRejected('busy', 'too many queries are waiting'), 'busy'],
    ['are not stored any more', null, null],
  ])('are released when they %s', async (_, outcome, expected) => {
    const { files, reads } = start();
    const file = files.open(image(1, 100 * MIB));
    if (outcome === null) reads[0]?.resolve(null);
    else reads[0]?.reject(outcome);
    expect(await file).toBe(expected);
    void files.open(image(1, 100 * MIB));
    expect(reads).toHaveLength(2);
  });
});
