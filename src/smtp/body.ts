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
 * Reads the stream of one DATA command to its end (RFC 5321 §4.5.2: dots are taken off already). `onTooLarge`
 * is called once when the client sends more than twice what it may: it does not mean to stop.
 */
export function readBody(
  stream: SMTPServerDataStream,
  held: HeldBytes,
  most: number,
  onTooLarge: () => void,
): BodyReading {
  let chunks: Buffer[] = [];
  let taken = 0;
  let problem: 'too-large' | 'too-much-at-once' | null = null;

  const release = () => {
    held.give(taken);
    taken = 0;
    chunks = [];
  };
  const giveUp = (why: 'too-large' | 'too-much-at-once') => {
    problem ??= why;
    release();
  };
  const body = new Promise<Body>((resolve, reject) => {
    let told = false;
    stream.on('data', (chunk: Buffer) => {
      if (stream.byteLength > most) giveUp('too-large');
      if (!told && stream.byteLength > 2 * most) {
        told = true;
        onTooLarge();
      }
      if (problem !== null) return;
      if (!held.take(chunk.length)) return giveUp('too-much-at-once');
      taken += chunk.length;
      chunks.push(chunk);
    });
    stream.once('end', () => resolve(problem ?? Buffer.concat(chunks)));
    stream.once('error', (error) => {
      release();
      reject(error);
    });
    stream.once('close', () => {
      // After `end` this changes nothing.
      if (!stream.readableEnded) release();
      reject(new Error('the client went away in the middle of a mail'));
    });
  });
  return { body, release };
}
