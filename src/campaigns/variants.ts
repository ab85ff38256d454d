import type { CampaignSend } from '../store/campaigns/campaign-sends.ts';
import type { DECISION_REASONS, VariantCounts, WinnerMeasure } from '../store/campaigns/campaign-variants.ts';
import { variantBits } from '../store/contacts/engagement.ts';

/*
 * A/B tests: a share of the audience receives one of several variants each, the rest waits and receives the winner. Who is in the
 * share, and with which variant, follows from the campaign and the contact alone, so that a restart changes nothing, and the two
 * passes over the audience have no contact in common.
 */

/** A test as a request has it. */
export interface TestRequest {
  /** Percent of the audience, 1 to 100. */
  share: number;
  winner: WinnerMeasure;
  waitHours?: number | undefined;
}

/** A test in its stored form (JSON). Variants are numbered in their order, from 0. */
export interface CampaignTest {
  /** Percent of the audience, 1 to 100. */
  share: number;
  /** `none` exactly if the share is 100: there is no rest. */
  winner: WinnerMeasure;
  /** Between the last message of the test and the decision; null: there is none. */
  waitHours: number | null;
  variants: TestedVariant[];
}

export interface TestedVariant {
  name: string;
  /** With its variables in braces. */
  subject: string;
}

/** Which variant the rest receives, in its stored form (JSON). */
export interface Decision {
  variant: number;
  reason: (typeof DECISION_REASONS)[number];
  /** Epoch ms. */
  at: number;
  /** Who chose it: the id of an API key or of a person, or the program; null: the rule. */
  by: string | null;
  /** The counts of each variant at that time. */
  counts: VariantCounts[];
}

/** Null: the campaign has one content. */
export function testOf({ test }: Pick<CampaignSend, 'test'>): CampaignTest | null {
  // Sound: only createCampaignSending and the import of accounts, whose sends are complete, write it.
  return test === null ? null : (JSON.parse(test) as CampaignTest);
}

/** Null: there is none yet, or no test. */
export function decisionOf({ decision }: Pick<CampaignSend, 'decision'>): Decision | null {
  // Sound: only the runner and createCampaignSending write it.
  return decision === null ? null : (JSON.parse(decision) as Decision);
}

/** The variants of which the next messages can be; [0] without a test. */
export function openVariants(send: CampaignSend): number[] {
  const decision = decisionOf(send);
  return decision === null
    ? (testOf(send)?.variants ?? [0]).map((_, variant) => variant)
    : [decision.variant];
}

/** Which content a contact receives in this pass over the audience, and its bits in `campaign_contacts`. */
export interface AssignedCopy {
  variant: number;
  bits: number;
}

const ONLY_CONTENT: AssignedCopy = { variant: 0, bits: 0 };

/** Assigns contacts to the contents of a campaign; null: it is not the contact's turn in this pass. */
export function assignmentOf(send: CampaignSend): (contactSeq: number) => AssignedCopy | null {
  const test = testOf(send);
  if (test === null) return () => ONLY_CONTENT;
  const decision = decisionOf(send);
  const decided = decision === null ? null : { variant: decision.variant, bits: 0 };
  return (contactSeq) => {
    const variant = testedVariant(test, send.campaign_id, contactSeq);
    if (send.in_rest === 1) return variant === null ? decided : null;
    if (variant === null) return null;
    // Messages that follow a decision are not part of the test.
    return decided ?? { variant, bits: variantBits(variant) };
  };
}

/** The variant of a contact in the share of the test; null: it belongs to the rest. */
export function testedVariant(
  { share, variants }: Pick<CampaignTest, 'share' | 'variants'>,
  campaignId: string,
  contactSeq: number,
): number | null {
  const place = placeOf(campaignId, contactSeq);
  const end = (share / 100) * PLACES;
  return place < end ? Math.floor((place / end) * variants.length) : null;
}

const PLACES = 2 ** 32;

/** A number below PLACES that depends on campaign and contact only, and is spread evenly over the contacts of each campaign. */
function placeOf(campaignId: string, contactSeq: number): number {
  // FNV-1a.
  let seed = 0x811c9dc5;
  for (let index = 0; index < campaignId.length; index++)
    seed = Math.imul(seed ^ campaignId.charCodeAt(index), 0x01000193);
  const high = Math.floor(contactSeq / PLACES);
  return mixed(mixed(contactSeq ^ seed) + mixed(high ^ seed) + seed);
}

/** The finalizer of MurmurHash3: each bit of the result depends on all bits of `number`. */
function mixed(number: number): number {
  let hash = number | 0;
  hash = Math.imul(hash ^ (hash >>> 16), 0x85ebca6b);
  hash = Math.imul(hash ^ (hash >>> 13), 0xc2b2ae35);
  return (hash ^ (hash >>> 16)) >>> 0;
}

/** Whether all members were processed. */
export function isComplete(send: CampaignSend): boolean {
  return isPassEnd(send) && !isBeforeRest(send);
}

/** Whether the share of a test was processed and the rest of the audience was not begun. */
export function isRestNext(send: CampaignSend): boolean {
  return isPassEnd(send) && isBeforeRest(send);
}

/** Whether all members were processed whose turn is in this pass. */
export function isPassEnd({ at_seq, last_seq }: CampaignSend): boolean {
  return last_seq !== null && at_seq >= last_seq;
}

function isBeforeRest(send: CampaignSend): boolean {
  return send.in_rest === 0 && hasRest(testOf(send));
}

/** Whether a part of the audience is not in the test. */
export function hasRest(test: CampaignTest | null): boolean {
  return test !== null && test.share < 100;
}
