import { LRUCache } from 'lru-cache';
import { createFairLimit } from '../../core/concurrency/gate.ts';
import { inSlices, type Order, type Work } from '../../core/concurrency/slices.ts';
import { errorText } from '../../core/errors.ts';
import { domainOf, needsSmtpUtf8 } from '../../mail/address.ts';
import { type ComposedMessage, composeInSteps, headerBytes } from '../../mail/compose.ts';
import type { CopyDetails, MessageContent } from '../../mail/content.ts';
import { signDkimInSteps } from '../../mail/dkim.ts';
import {
  type CopyIdentity,
  isPreparedFor,
  mergeContent,
  type OwnContent,
  partsOf,
  preparePartsInSteps,
  type SharedParts,
  type SharedTexts,
  type TemplatedContent,
} from '../../mail/shared-content.ts';
import { type JobContent, readContent } from '../../mail/stored-content.ts';
import { attempt, LocalRefusal } from './attempt.ts';
import type { Client } from './client.ts';
import type { AttemptReport, DeliveryJob, SharedReference } from './protocol.ts';
import type { OutgoingMessage } from './transaction.ts';

/**
 * Runs one job: connect, compose, sign, deliver. If the content cannot be composed, the report states so and the worker
 * continues. Null: the worker was stopped before any host could have accepted the message.
 */
export async function runJob(
  job: DeliveryJob,
  client: Client,
  sharedContents: SharedContents,
): Promise<AttemptReport | null> {
  const { envelope, content, signers } = job;
  const sender = signers[0]?.domain ?? domainOf(envelope.from);
  const compose = async (order: Order) => {
    try {
      return await inSlices(preparing(job, client.clock.now, sharedContents), sender, order);
    } finally {
      // A session may take minutes and needs only the composed bytes: releases the content.
      job.content = NO_CONTENT;
      delete job.shared;
    }
  };
  const { size } = content;
  const prepare = () =>
    size <= MAX_FINISHED_BYTES
      ? compose('finish')
      : largeContents.run(sender, () => compose('alternate'), size);
  return attempt(job, prepare, client);
}

/** Bytes of a content up to which its message is finished first. For a longer one, others of its domain would wait too long. */
const MAX_FINISHED_BYTES = 256 * 1024;
/** Bytes of larger contents that are decoded at a time. */
const MAX_LARGE_BYTES = 4 * 1024 * 1024;

/**
 * Larger contents of this worker: of each sender one at a time, or those of a burst would all be decoded before the first of
 * them is composed.
 */
const largeContents = createFairLimit({ concurrency: MAX_LARGE_BYTES, perKey: 1, order: 'turns' });

/**
 * Decodes, composes and signs the message, once for all hosts. Sliced by the sender's domain: a large message of one domain
 * delays those of others by one step at a time. Of one domain, a message is finished before the next one of about its size is
 * decoded, because decoded contents that wait would fill the heap.
 */
function* preparing(job: DeliveryJob, now: () => number, of: SharedContents): Work<OutgoingMessage> {
  let composed: ComposedMessage;
  try {
    checkPath(job.envelope.from);
    checkPath(job.envelope.to);
    composed = yield* decodingAndComposing(job, of);
  } catch (error) {
    // RFC 3463 §3.7: 5.6.0, other or undefined media error.
    const reply = { code: 554, enhanced: '5.6.0', text: failureText('composed', error) };
    throw new LocalRefusal('not-composed', reply);
  }
  try {
    return yield* signing(job, composed, now());
  } catch (error) {
    // The key can be replaced, so the message is deferred. RFC 3463 §3.4: 4.3.0, other or undefined mail system status.
    const reply = { code: 451, enhanced: '4.3.0', text: failureText('signed', error) };
    throw new LocalRefusal('refused-locally', reply);
  }
}

function* decodingAndComposing(
  { content, shared, copy }: DeliveryJob,
  of: SharedContents,
): Work<ComposedMessage> {
  const stored = readContent(content);
  // Sound: the send path validated the content before it was stored, and the fields are checked here.
  if (shared === undefined)
    return yield* composeInSteps(checkFields(stored, MESSAGE_FIELDS) as MessageContent, copy);
  const own = checkFields(stored, OWN_FIELDS) as OwnContent | TemplatedContent;
  return yield* composingShared(of(shared), own, shared.identity, copy);
}

/** Composes a message that shares texts with others. The first one prepares the parts that they share. */
function* composingShared(
  cached: CachedShared,
  own: OwnContent | TemplatedContent,
  identity: CopyIdentity,
  copy: CopyDetails,
): Work<ComposedMessage> {
  const { content } = cached;
  if (cached.mayPrepare && (cached.parts === null || !isPreparedFor(cached.parts, copy.tracking))) {
    cached.mayPrepare = false;
    cached.parts = yield* preparePartsInSteps(content, copy.tracking);
    cached.mayPrepare = true;
  }
  const parts = cached.parts === null ? undefined : partsOf(cached.parts, content, own.values, copy);
  yield;
  return yield* composeInSteps(mergeContent(content, own, identity, copy.recipient), copy, parts);
}

const MESSAGE_FIELDS: readonly (keyof MessageContent)[] = ['from', 'to', 'subject', 'html', 'messageId'];
const OWN_FIELDS: readonly (keyof OwnContent & keyof TemplatedContent)[] = ['values'];

/** Throws when the JSON is not an object, or lacks a field. */
function checkFields(stored: unknown, fields: readonly string[]): object {
  if (typeof stored !== 'object' || stored === null) throw new Error('the stored content is not an object');
  const missing = fields.filter((field) => !(field in stored));
  if (missing.length > 0) throw new Error(`the stored content has no field ${missing.join(', ')}`);
  return stored;
}

function* signing(job: DeliveryJob, composed: ComposedMessage, now: number): Work<OutgoingMessage> {
  const { from, to } = job.envelope;
  return {
    from,
    to,
    header: headerBytes(composed, yield* signDkimInSteps(composed, job.signers, now)),
    body: composed.body,
    utf8: composed.needsSmtpUtf8 || needsSmtpUtf8(from) || needsSmtpUtf8(to),
  };
}

/** The last check before SMTP: a line break in an address would start another command. */
function checkPath(path: string): void {
  if (/\p{Cc}/u.test(path)) throw new Error('an envelope address has a control character');
}

function failureText(action: 'composed' | 'signed', error: unknown): string {
  return `the message cannot be ${action}: ${errorText(error)}`.slice(0, 500);
}

const NO_CONTENT: JobContent = { encoding: 'text', text: '', size: 0 };

/** Decodes the shared part of contents; caches the most recently used ones. */
export type SharedContents = (reference: SharedReference) => CachedShared;

export interface CachedShared {
  content: SharedTexts;
  /** Null until a message has prepared them. */
  parts: SharedParts | null;
  /** False while a message prepares the parts, and for content that is not cached: others do without. */
  mayPrepare: boolean;
}

/**
 * Maximum bytes of decoded shared contents in the cache. Their prepared parts take up to four times as much. Longer content is
 * decoded for each copy.
 */
const MAX_CACHED_BYTES = 16 * 1024 * 1024;

/**
 * For one worker: caches up to 16 MiB of contents, by their size when decoded; the least recently used is removed first.
 * Throws when a content cannot be read.
 */
export function createSharedContents(): SharedContents {
  const cache = new LRUCache<number, CachedShared & { size: number }>({
    maxSize: MAX_CACHED_BYTES,
    sizeCalculation: ({ size }) => size,
  });
  return (reference) => {
    const { id, size } = reference;
    const cached = cache.get(id);
    if (cached !== undefined) return cached;
    // Sound: only sending/encode.ts writes it, after validation.
    const content = readContent(reference) as SharedTexts;
    const entry = { content, parts: null, mayPrepare: size <= MAX_CACHED_BYTES, size };
    cache.set(id, entry);
    return entry;
  };
}
