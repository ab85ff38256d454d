import type { Choices } from './draft-saver.ts';

/* The variants of an A/B test that is prepared. The first one is the mail of the draft itself. */

export type Variant = NonNullable<Choices['variants']>[number];
export type PreparedTest = NonNullable<Choices['test']>;

/** As the API names and limits them. */
const NAMES = ['A', 'B', 'C', 'D'];
export const MAX_VARIANTS = NAMES.length;
/** With a winner: the rest of the audience receives it. */
export const MAX_SHARE = 99;
export const MAX_WAIT_HOURS = 720;

export const FIRST_TEST: PreparedTest = { share: 20, winner: 'opens', waitHours: 4 };

/** The name of a variant, from 0. */
export function variantName(variants: readonly Variant[], index: number): string {
  return variants[index]?.name ?? NAMES[index] ?? '';
}

/** The names of the variants of a draft; none without a test. */
export function variantNames({ variants = [] }: Pick<Choices, 'variants'>): string[] {
  return variants.map((_, index) => variantName(variants, index));
}

/** What a variant sends: its own content, else that of the draft. */
export function contentOf(
  { variants = [], templateId, subject }: Choices,
  index: number,
): Pick<Choices, 'templateId' | 'subject'> {
  const own = variants[index];
  return { templateId: own?.templateId ?? templateId, subject: own?.subject ?? subject };
}

interface TestFaults {
  /** Whether the variant, from 0, has the content of one before it. */
  isSame(index: number): boolean;
  isShareWrong: boolean;
  isWaitWrong: boolean;
}

/** What is wrong with the test of a draft. */
export function testFaults(choices: Choices): TestFaults {
  const { variants = [], test } = choices;
  const contents = variants.map((_, index) => {
    const { templateId, subject } = contentOf(choices, index);
    return JSON.stringify([templateId, subject]);
  });
  const hasWinner = test !== undefined && test.winner !== 'none';
  return {
    isSame: (index) => contents.indexOf(contents[index] ?? '') < index,
    isShareWrong: hasWinner && !isWithin(test.share, MAX_SHARE),
    isWaitWrong: hasWinner && !isWithin(test.waitHours, MAX_WAIT_HOURS),
  };
}

function isWithin(value: number | undefined, max: number): boolean {
  return Number.isInteger(value) && value !== undefined && value >= 1 && value <= max;
}
