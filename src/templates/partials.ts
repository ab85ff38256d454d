import { iso } from '../core/clock.ts';
import { accountLimitReached, invalid, isRefusal, type Refusal, refuse } from '../core/refusal.ts';
import { type LiquidPartials, MAX_LIQUID_SOURCE, partialNames } from '../mail/liquid.ts';
import type { Context } from '../store/context.ts';
import type { PartialHead, PartialRow, PartialUser } from '../store/partials.ts';
import { readQuery } from '../store/readers/reads.ts';
import type { NamedPageFilter, Page } from '../store/rows/page.ts';
import type { Tables } from '../store/tables.ts';
import { type LiquidContent, readLiquid, type TemplateContent } from './liquid.ts';
import type { TemplateThreads } from './thread/threads.ts';

/*
 * Partials of an account: html that its content in Liquid inserts by name. Content has the partials that it uses, and those
 * that these use, from the moment when it is resolved: a send or a message of a sequence when it is accepted, a campaign when its
 * send is accepted, so that all its recipients receive the same mail.
 */

export const MAX_PARTIALS = 200;
/** Characters of a partial. */
export const MAX_PARTIAL_HTML = 128 * 1024;
/** Partials within partials. */
const MAX_DEPTH = 10;
/** Users that a refusal names. */
const MAX_NAMED_USES = 10;
const USERS_AT_A_TIME = 10;

export interface PartialFields {
  name: string;
  html: string;
}

/** Keeps no state. Lists and searches run through `reader`, everything else on the calling thread. */
export function createPartials(
  { tables, reader, writer, clock, ids }: Pick<Context, 'tables' | 'reader' | 'writer' | 'clock' | 'ids'>,
  threads: Pick<TemplateThreads, 'read'>,
) {
  /** Refuses html that is not valid, or whose partials contain it. */
  async function htmlRefusal(accountId: string, { name, html }: PartialFields): Promise<Refusal | null> {
    const used = usedPartials(tables, accountId, html, name);
    if (isRefusal(used)) return used;
    const read = await readLiquid(threads, accountId, { subject: '', html, text: null, liquid: used });
    return isRefusal(read) ? read : null;
  }

  /** Refuses (`PARTIAL_IN_USE`) while something uses the name. */
  async function useRefusal(accountId: string, name: string): Promise<Refusal | null> {
    const uses = await reader.query(accountId, partialUses, accountId, name);
    return uses.length === 0 ? null : inUse(name, uses);
  }

  return {
    /** Newest first, without their html. */
    list: (filter: NamedPageFilter): Promise<Page<PartialHead>> =>
      reader.table(filter.accountId, 'partials', 'list', filter),
    get: (accountId: string, partialId: string): PartialRow | Refusal =>
      findPartial(tables, accountId, partialId),
    create: async (accountId: string, fields: PartialFields): Promise<PartialRow | Refusal> => {
      const fault = await htmlRefusal(accountId, fields);
      if (fault !== null) return fault;
      return writer.run((tx): PartialRow | Refusal => {
        if (tx.partials.count(accountId) >= MAX_PARTIALS)
          return accountLimitReached('partials', MAX_PARTIALS, {
            remedy: 'delete partials that are not used',
          });
        const refusal = nameRefusal(tx, accountId, fields.name) ?? cycleRefusal(tx, accountId, fields);
        if (refusal !== null) return refusal;
        const now = clock.now();
        const row = {
          ...fields,
          partial_id: ids.make('partial'),
          account_id: accountId,
          created_at: now,
          updated_at: now,
        };
        return { ...row, seq: tx.partials.insert(row) };
      }, accountId);
    },
    /** Changes the fields that are present. The name cannot change while something uses it. */
    update: async (
      accountId: string,
      partialId: string,
      fields: Partial<PartialFields>,
    ): Promise<PartialRow | Refusal> => {
      const before = findPartial(tables, accountId, partialId);
      if (isRefusal(before)) return before;
      const { name, html } = { ...before, ...fields };
      const refusal =
        (await htmlRefusal(accountId, { name, html })) ??
        (name === before.name ? null : await useRefusal(accountId, before.name));
      if (refusal !== null) return refusal;
      return writer.run((tx): PartialRow | Refusal => {
        const partial = findPartial(tx, accountId, partialId);
        if (isRefusal(partial)) return partial;
        const changed = { ...partial, ...fields, updated_at: clock.now() };
        const taken = changed.name === partial.name ? null : nameRefusal(tx, accountId, changed.name);
        const fault = taken ?? cycleRefusal(tx, accountId, changed);
        if (fault !== null) return fault;
        tx.partials.update(changed);
        return changed;
      }, accountId);
    },
    /** Refused (`PARTIAL_IN_USE`) while a template, a sequence or another partial uses it. */
    remove: async (accountId: string, partialId: string): Promise<PartialRow | Refusal> => {
      const found = findPartial(tables, accountId, partialId);
      if (isRefusal(found)) return found;
      const refusal = await useRefusal(accountId, found.name);
      if (refusal !== null) return refusal;
      return writer.run((tx): PartialRow | Refusal => {
        const partial = findPartial(tx, accountId, partialId);
        if (isRefusal(partial)) return partial;
        tx.partials.remove(partial.seq);
        return partial;
      }, accountId);
    },
  };
}

export type Partials = ReturnType<typeof createPartials>;

/** Templates in Liquid, sequences that are not drafts, and partials that use a partial: at most a few more than are named. */
export const partialUses = readQuery(
  'partialUses',
  (tables: Tables, accountId: string, name: string): Omit<PartialUser, 'html'>[] => {
    const uses = new Map<string, Omit<PartialUser, 'html'>>();
    // A few at a time: each may have a megabyte of HTML.
    for (let skip = 0; uses.size <= MAX_NAMED_USES; skip += USERS_AT_A_TIME) {
      const users = tables.partials.users({ accountId, name, skip, limit: USERS_AT_A_TIME });
      for (const { html, ...user } of users) if (partialNames(html).includes(name)) uses.set(user.id, user);
      if (users.length < USERS_AT_A_TIME) break;
    }
    return [...uses.values()];
  },
);

function inUse(name: string, uses: readonly Omit<PartialUser, 'html'>[]): Refusal {
  const named = uses.slice(0, MAX_NAMED_USES);
  const names = named.map((use) => `${use.kind} ${JSON.stringify(use.name)}`).join(', ');
  const more = uses.length > named.length ? ' and others' : '';
  return refuse(
    'PARTIAL_IN_USE',
    `The partial "${name}" is used by ${names}${more}: remove it there before you delete or rename it`,
    { details: named.map((use) => ({ field: `${use.kind}Id`, name: use.id, message: use.name })) },
  );
}

function findPartial(tables: Tables, accountId: string, partialId: string): PartialRow | Refusal {
  return (
    tables.partials.get(accountId, partialId) ??
    refuse('PARTIAL_NOT_FOUND', `There is no partial ${partialId}`)
  );
}

function nameRefusal(tables: Tables, accountId: string, name: string): Refusal | null {
  const other = tables.partials.byName(accountId, name);
  return other === null ? null : invalid('name', `is the name of the partial ${other.partial_id}`);
}

/** Repeats the check of `htmlRefusal` in the unit of work: another partial can have changed meanwhile. */
function cycleRefusal(tables: Tables, accountId: string, { name, html }: PartialFields): Refusal | null {
  const used = usedPartials(tables, accountId, html, name);
  return isRefusal(used) ? used : null;
}

/**
 * The partials that html uses, with those that these use. Unknown ones are left out: the parser names their place. Refused when
 * they contain each other, are nested too deep, or are too many or too long together. `within`: the partial with this html.
 */
function usedPartials(
  tables: Tables,
  accountId: string,
  html: string,
  within: string | null = null,
): LiquidPartials | Refusal {
  if (html.length > MAX_LIQUID_SOURCE) return TOO_LONG;
  const loaded = new Map<string, string>();
  /** How many partials are nested in one, with itself; 0: there is none with this name. */
  const depths = new Map<string, number>();
  let length = html.length;

  function depthOf(name: string, path: readonly string[]): number | Refusal {
    if (path.includes(name)) return htmlFault(`partials contain each other: ${[...path, name].join(' > ')}`);
    const known = depths.get(name);
    if (known !== undefined) return known;
    if (depths.size >= MAX_PARTIALS) return htmlFault(`names more than ${MAX_PARTIALS} partials`);
    const body = tables.partials.byName(accountId, name)?.html;
    if (body === undefined) {
      depths.set(name, 0);
      return 0;
    }
    length += body.length;
    if (length > MAX_LIQUID_SOURCE) return TOO_LONG;
    loaded.set(name, body);
    const inner = deepest(body, [...path, name]);
    if (isRefusal(inner)) return inner;
    depths.set(name, inner + 1);
    return inner + 1;
  }

  function deepest(body: string, path: readonly string[]): number | Refusal {
    let deep = 0;
    for (const name of partialNames(body)) {
      const depth = depthOf(name, path);
      if (isRefusal(depth)) return depth;
      deep = Math.max(deep, depth);
    }
    return deep;
  }

  const depth = deepest(html, within === null ? [] : [within]);
  if (isRefusal(depth)) return depth;
  if (depth + (within === null ? 0 : 1) > MAX_DEPTH)
    return htmlFault(`nests partials more than ${MAX_DEPTH} deep`);
  return Object.fromEntries(loaded);
}

function htmlFault(message: string): Refusal {
  return refuse('TEMPLATE_SYNTAX', `html: ${message}`, { details: [{ field: 'html', message }] });
}

const TOO_LONG = htmlFault(`must have at most ${MAX_LIQUID_SOURCE} characters with its partials`);

/** Content in Liquid with the partials that it uses now; other content as it is. */
export function withPartials<Content extends TemplateContent>(
  tables: Tables,
  accountId: string,
  content: Content,
): Content | (Content & LiquidContent) | Refusal {
  if (content.liquid === undefined) return content;
  const liquid = usedPartials(tables, accountId, content.html);
  return isRefusal(liquid) ? liquid : { ...content, liquid };
}

/** Without the account and the html. */
export function presentPartial(row: PartialRow | PartialHead) {
  return {
    partialId: row.partial_id,
    name: row.name,
    bytes: 'html' in row ? Buffer.byteLength(row.html) : row.bytes,
    createdAt: iso(row.created_at),
    updatedAt: iso(row.updated_at),
  };
}
