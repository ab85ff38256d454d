import type { ErasureRow } from '../../store/contacts/contacts-erasure.ts';
import type { Tables } from '../../store/tables.ts';
import { createScrubber, type Person, type Scrubber } from './scrub.ts';

/**
 * Clears the personal data of one step of an erasure, as tables declare it (store/data-policies). An eraser processes a
 * portion in a unit of work and is called again while there is more; it is idempotent.
 */
export interface Eraser {
  name: string;
  erase(tables: Tables, erasure: ErasureRun, portion: PortionLimit): EraseResult;
  /** Called outside units of work after `prepare`. Resolves with false when the eraser must be called again later. */
  prepare?(erasure: ErasureRun): Promise<boolean>;
}

/**
 * waiting: a worker is sending one of the messages; the eraser is called again later. prepare: the eraser's `prepare` must
 * run before it continues.
 */
export type EraseResult = 'more' | 'done' | 'waiting' | 'prepare';

export interface PortionLimit {
  /** Maximum number of rows to read. */
  rows: number;
  /** Whether the time of the portion is used up; called after each row. */
  isOver(): boolean;
}

export interface ErasureRun {
  row: ErasureRow;
  person: Person;
  scrubber: Scrubber;
  /** Positions of the erasers by name, in memory only: after a restart they begin again. */
  progress: Map<string, unknown>;
  now: number;
}

/**
 * Begins a run at the start of every eraser: parses the person of the row and compiles the scrubber. `now`: epoch ms.
 */
export function createErasureRun(row: ErasureRow, now: number): ErasureRun {
  const person = JSON.parse(row.person) as Person;
  return { row, person, scrubber: createScrubber(person), progress: new Map(), now };
}

/** The position of an eraser, `start` at first. Sound: each eraser stores under its name what it reads. */
export function positionOf<Position>({ progress }: ErasureRun, name: string, start: Position): Position {
  return (progress.get(name) as Position | undefined) ?? start;
}

/** Position in the rows of each of the person's identifiers. */
interface PersonPosition {
  /** Index of the identifier. */
  identifier: number;
  after: number;
}

const PERSON_START: PersonPosition = { identifier: 0, after: 0 };

/** Handles the rows of one identifier after the other, in the order of their numbers. */
export function walkPerson<Row>(
  run: ErasureRun,
  portion: PortionLimit,
  walk: {
    name: string;
    read(identifier: string, range: { after: number; limit: number }): Row[];
    seqOf(row: Row): number;
    handle(row: Row, identifier: string): void;
  },
): EraseResult {
  const { name, read, seqOf, handle } = walk;
  const position = positionOf(run, name, PERSON_START);
  const identifier = run.person.identifiers[position.identifier];
  if (identifier === undefined) return 'done';
  const rows = read(identifier, { after: position.after, limit: portion.rows });
  let { after } = position;
  for (const row of rows) {
    handle(row, identifier);
    after = seqOf(row);
    if (portion.isOver()) break;
  }
  const last = rows.at(-1);
  const isComplete = rows.length < portion.rows && (last === undefined || seqOf(last) === after);
  run.progress.set(
    name,
    isComplete ? { identifier: position.identifier + 1, after: 0 } : { ...position, after },
  );
  return 'more';
}
