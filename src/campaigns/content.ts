import { createHash } from 'node:crypto';
import { LRUCache } from 'lru-cache';
import { isRefusal, type Refusal } from '../core/refusal.ts';
import { inSlices, type Work } from '../core/slices.ts';
import type { SharedContent, SharedPart } from '../mail/shared-content.ts';
import { type PackedContent, packContent, packLongContent } from '../mail/stored-content.ts';
import { encodingString } from '../sending/draft.ts';
import type { HtmlReader } from '../sending/html-reader.ts';
import { readingWording, type SharedWording, sharedParts, sharingWording } from '../sending/render.ts';
import type { CampaignSend } from '../store/campaigns/campaign-sends.ts';
import type { Tables } from '../store/tables.ts';
import { isContactField } from './fields.ts';
import { type CampaignMail, keptMail, type ReadyCampaign, stillReady } from './mail.ts';

/**
 * Prepares what all copies of a campaign have in common, ahead of the units of work that store the copies: parsed,
 * rendered and deflated once as long as nothing changes that goes into it, whatever the number of recipients.
 */
export interface CampaignContents {
  /** Resolves with what the campaign is sent with, as things are now; with a refusal when it cannot be sent. */
  prepare(tables: Tables, send: CampaignSend): Promise<CampaignContent | Refusal>;
}

export interface CampaignContent {
  mail: CampaignMail;
  /** Identifies what the account and the group contributed. */
  state: string;
  /** A refusal: it cannot be rendered for anybody. */
  shared: SharedBody | Refusal;
}

/** What all copies have in common, as it is rendered and as it is stored. */
export interface SharedBody {
  wording: SharedWording;
  packed: PackedContent;
  /** Of the packed body. */
  digest: Buffer;
}

/** Characters of the campaigns that are kept, together: of their source and of what was rendered. */
const MAX_KEPT = 32 * 1024 * 1024;

export function createCampaignContents(html: HtmlReader): CampaignContents {
  const kept = new LRUCache<number, CampaignContent>({ maxSize: MAX_KEPT, sizeCalculation: sizeOf });

  return {
    prepare: async (tables, send) => {
      const known = kept.get(send.campaign_seq);
      const mail = known?.mail ?? keptMail(tables, send);
      await inSlices(readingWording(mail.wording, html), send.account_id);
      const ready = stillReady(tables, send, html, mail);
      if (isRefusal(ready)) return ready;
      const state = stateOf(ready);
      if (known?.state === state) return known;
      const wording = await inSlices(
        sharingWording(ready.prepared, mail.variables, isContactField),
        send.account_id,
      );
      const content: CampaignContent = {
        mail,
        state,
        shared: isRefusal(wording) ? wording : await packShared(wording, ready, mail, send.account_id),
      };
      kept.set(send.campaign_seq, content);
      return content;
    },
  };
}

/** What may change between two portions of a campaign and goes into its copies. Text values derive from those of html. */
export function stateOf({ prepared, group }: ReadyCampaign): string {
  return JSON.stringify([prepared.service.html, group.subscription_group_id, group.name]);
}

async function packShared(
  wording: SharedWording,
  { group }: ReadyCampaign,
  mail: CampaignMail,
  accountId: string,
): Promise<SharedBody> {
  const { from, fromDomain, replyTo } = mail;
  const list = { id: group.subscription_group_id, name: group.name };
  const content: SharedContent = { from, fromDomain, replyTo, list, ...sharedParts(wording) };
  const packed = await packLongContent(packContent(await inSlices(encodingShared(content), accountId)));
  return { wording, packed, digest: createHash('sha256').update(packed.body).digest() };
}

/** JSON, in steps: the texts may be megabytes long. */
function* encodingShared({ subject, html, text, ...rest }: SharedContent): Work<string> {
  const parts = [];
  for (const [name, part] of Object.entries({ subject, html, text }))
    parts.push(`${JSON.stringify(name)}:${part === null ? 'null' : yield* encodingPart(part)}`);
  return `${JSON.stringify(rest).slice(0, -1)},${parts.join(',')}}`;
}

function* encodingPart({ texts, ...rest }: SharedPart): Work<string> {
  const encoded = [];
  for (const text of texts) {
    encoded.push(yield* encodingString(text));
    yield;
  }
  return `${JSON.stringify(rest).slice(0, -1)},"texts":[${encoded.join(',')}]}`;
}

function sizeOf({ mail, state, shared }: CampaignContent): number {
  const { html, text } = mail.wording;
  const rendered = isRefusal(shared) ? 0 : shared.packed.size;
  return html.length + (text?.length ?? 0) + state.length + rendered + 1;
}
