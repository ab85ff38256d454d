import type { Database } from '../database.ts';

/** What was done with messages already; a bit for each kind of visit and each kind of visitor. */
export const VISITS = {
  email_opened: { person: 1, machine: 2 },
  email_clicked: { person: 4, machine: 8 },
} as const;

export type VisitKind = keyof typeof VISITS;

export function visitTable(db: Database) {
  const mark = db.prepare<{ seq: number; bit: number }>(
    'UPDATE messages SET visits = visits | @bit WHERE seq = @seq AND visits & @bit = 0',
  );
  return {
    /** True when nobody of that sort did this with the message before. */
    markFirst: (messageSeq: number, kind: VisitKind, by: 'person' | 'machine'): boolean =>
      mark.run({ seq: messageSeq, bit: VISITS[kind][by] }).changes === 1,
  };
}
