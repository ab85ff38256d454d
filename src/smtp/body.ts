import type { SMTPServerDataStream } from 'smtp-server';

/**
 * Takes in the mail itself, never more of it than is allowed: neither of one mail, nor of all that arrive at
 * once. What is too much is let pass by and forgotten.
 */
export type Body = Buffer | 'too-large' | 'too-much-at-once';

/** Bytes of mails in hand, all connections together. */
export interface HeldBytes {
  /** False, and nothing taken, when there is no room. */
  take(bytes: number): boolean;
  give(bytes: number): void;
}

export function createHeldBytes(most: number): HeldBytes {
  let held = 0;
  return {
    take: (bytes) => {
      if (held + bytes > most) return false;
      held += bytes;
      return true;
    },
    give: (bytes) => {
      held -= bytes;
    },
  };
}

export interface BodyReading {
  /** Rejects when the client is gone before the end. */
  body: Promise<Body>;
  /** Gives back the bytes that are held for it; call it once the mail is done with. */
  release(): void;
}

/**
 * Pieces that one mail may come in. Each dot that is taken off begins a new one, and costs as much as thousands
 * of octets: a mail of nothing but dots would hold up everybody else.
 */
const MOST_PIECES = 100_000;

/**
 * Reads the stream of one DATA command to its end (RFC 5321 §4.5.2: dots are taken off already). `onTooLarge`
 * is called once when the client sends more than twice what it may, or in far too many pieces: it does not mean
 * to stop.
 */
export function readBody(
  stream: SMTPServerDataStream,
  held: HeldBytes,
  most: number,
  onTooLarge: () => void,
): BodyReading {
  let mail = createGrowing();
  let taken = 0;
  let pieces = 0;
  let problem: 'too-large' | 'too-much-at-once' | null = null;
  let told = false;

  const release = () => {
    held.give(taken);
    taken = 0;
    mail = createGrowing();
  };
  const giveUp = (why: 'too-large' | 'too-much-at-once') => {
    problem ??= why;
    release();
  };
  const take = (chunk: Buffer) => {
    const isHopeless = ++pieces > MOST_PIECES || stream.byteLength > 2 * most;
    if (isHopeless || stream.byteLength > most) giveUp('too-large');
    if (!told && isHopeless) {
      told = true;
      onTooLarge();
    }
    if (problem !== null) return;
    if (held.take(chunk.length)) {
      taken += chunk.length;
      mail.add(chunk);
    } else giveUp('too-much-at-once');
  };
  const body = new Promise<Body>((resolve, reject) => {
    stream.on('data', take);
    stream.once('end', () => resolve(problem ?? mail.content()));
    // An `error` is followed by `close`; after `end`, this changes nothing.
    stream.once('error', reject);
    stream.once('close', () => {
      if (!stream.readableEnded) release();
      reject(new Error('the client went away in the middle of a mail'));
    });
  });
  return { body, release };
}

/**
 * One buffer, grown by doubling. A list of the chunks would be many times as large as the mail where each
 * line begins with a dot, because each dot that is taken off ends a chunk.
 */
function createGrowing() {
  let buffer = Buffer.alloc(0);
  let length = 0;
  return {
    add: (chunk: Buffer): void => {
      if (length + chunk.length > buffer.length) {
        const larger = Buffer.allocUnsafe(Math.max(2 * buffer.length, length + chunk.length, 16_384));
        buffer.copy(larger, 0, 0, length);
        buffer = larger;
      }
      chunk.copy(buffer, length);
      length += chunk.length;
    },
    content: (): Buffer => buffer.subarray(0, length),
  };
}
