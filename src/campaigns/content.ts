import { LRUCache } from 'lru-cache';
import { inSlices } from '../core/concurrency/slices.ts';
import { isRefusal, type Refusal } from '../core/refusal.ts';
import type { SharedContent } from '../mail/shared-content.ts';
import { type PackedShared, packShared } from '../sending/encode-shared.ts';
import type { HtmlReader } from '../sending/render/html-reader.ts';
import { parsingContent } from '../sending/render/render.ts';
import { type SharedRendering, sharedParts, sharingPrepared } from '../sending/render/render-shared.ts';
import type { CampaignSend } from '../store/campaigns/campaign-sends.ts';
import type { Tables } from '../store/tables.ts';
import { isContactField } from './fields.ts';
import { type CampaignMail, type ReadyCampaign, recheckCampaign, storedMail } from './mail.ts';

export interface CampaignContent {
  mail: CampaignMail;
  /** Identifies the input from the account and the group. */
  state: string;
  /** A refusal: it cannot be rendered for any recipient. */
  shared: SharedBody | Refusal;
}

/** The shared content as it is rendered and as it is stored. */
export interface SharedBody extends PackedShared {
  rendering: SharedRendering;
}

/** Characters of all cached campaigns, of their source and their rendering. */
const MAX_CACHED_CHARACTERS = 32 * 1024 * 1024;

/**
 * Prepares the shared content of a campaign's copies, ahead of the units of work that store the copies. It is parsed,
 * rendered and deflated once, and again only when its input changes. Begins with an empty cache by `campaign_seq`,
 * bounded by MAX_CACHED_CHARACTERS; the content that was used least recently is dropped. `prepare` works in turns of
 * the account.
 */
export function createCampaignContents(htmlReader: HtmlReader) {
  const cache = new LRUCache<number, CampaignContent>({
    maxSize: MAX_CACHED_CHARACTERS,
    sizeCalculation: sizeOf,
  });

  return {
    /** Resolves with the current content, or with a refusal when the campaign cannot be sent. */
    prepare: async (tables: Tables, send: CampaignSend): Promise<CampaignContent | Refusal> => {
      const known = cache.get(send.campaign_seq);
      const mail = known?.mail ?? storedMail(tables, send);
      await inSlices(parsingContent(mail.wording, htmlReader), send.account_id);
      const ready = recheckCampaign(tables, send, htmlReader, mail);
      if (isRefusal(ready)) return ready;
      const state = stateOf(ready);
      if (known?.state === state) return known;
      const rendering = await inSlices(
        sharingPrepared(ready.prepared, mail.variables, isContactField),
        send.account_id,
      );
      const content: CampaignContent = {
        mail,
        state,
        shared: isRefusal(rendering)
          ? rendering
          : { rendering, ...(await packCampaign(rendering, ready, mail, send.account_id)) },
      };
      cache.set(send.campaign_seq, content);
      return content;
    },
  };
}

export type CampaignContents = ReturnType<typeof createCampaignContents>;

/** Identifies the input of the copies that can change between two batches. Text values derive from those of html. */
export function stateOf({ prepared, group }: ReadyCampaign): string {
  return JSON.stringify([prepared.service.html, group.subscription_group_id, group.name]);
}

function packCampaign(
  rendering: SharedRendering,
  { group }: ReadyCampaign,
  mail: CampaignMail,
  accountId: string,
): Promise<PackedShared> {
  const { from, fromDomain, replyTo } = mail;
  const list = { id: group.subscription_group_id, name: group.name };
  const content: SharedContent = { from, fromDomain, replyTo, list, ...sharedParts(rendering) };
  return packShared(content, accountId);
}

function sizeOf({ mail, state, shared }: CampaignContent): number {
  const { html, text } = mail.wording;
  const rendered = isRefusal(shared) ? 0 : shared.packed.size;
  return html.length + (text?.length ?? 0) + state.length + rendered + 1;
}
