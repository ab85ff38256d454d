import type { KeyObject } from 'node:crypto';
import { Counter, type Registry } from 'prom-client';
import type { DnsView } from '../../dns/dns-view.ts';
import { generateEd25519Key } from '../../mail/dkim.ts';
import type { Context } from '../../store/context.ts';
import type { DkimKeyRow, DkimKeyState, DomainRow, KeySlot } from '../../store/domains/domains.ts';
import type { Tables } from '../../store/tables.ts';
import type { KeyQueue } from '../key-queue.ts';
import { optionalSlots, SLOTS, slotHost, slotRecordName, slotSelector } from '../key-slots.ts';
import { sealKey } from '../keys.ts';
import type { Platform } from '../platform/platform.ts';
import { checkKey } from '../verification/checks/dkim.ts';
import {
  type KeyStep,
  MIN_PUBLISHED_MS,
  planKeySteps,
  type SlotObservation,
  type SlotObservations,
} from './plan.ts';

/**
 * The keys of domains in the platform's zone. Each verification looks up their records, generates keys, and takes the steps
 * of plan.ts in the unit of work that records its result. Verifications are scheduled in the database, so a restart loses no
 * step.
 */
export type ManagedKeys = ReturnType<typeof createManagedKeys>;

export interface AppliedSteps {
  taken: { kind: KeyStepKind; selector: string | undefined }[];
  /**
   * When the next step may be due, epoch ms, if that may be before the next scheduled check of the domain; null: it is
   * not.
   */
  dueAt: number | null;
}

export type GeneratedKeys = ReadonlyMap<KeySlot, KeyObject>;

/** A step that was taken, for metrics. */
export type KeyStepKind = KeyStep['kind'];

/**
 * Keeps no state. Call order in a verification: `observe` (DNS), `generate` (key queue), `apply` in the unit of work,
 * `report` after its commit. A key that was not generated leaves its step and later ones for the next verification.
 */
export function createManagedKeys(
  { tables, clock, log, seal }: Pick<Context, 'tables' | 'clock' | 'log' | 'seal'>,
  {
    keyQueue,
    platform,
    onStep,
  }: { keyQueue: KeyQueue; platform: Platform; onStep: (step: KeyStepKind) => void },
) {
  const plan = (keys: readonly DkimKeyRow[], observations: SlotObservations, now: number) =>
    planKeySteps(keys, observations, platform.keyPolicy, { graceMs: platform.retirementMs, now });

  function take(
    { dkimKeys }: Tables,
    domain: DomainRow,
    step: KeyStep,
    generated: GeneratedKeys,
    now: number,
  ): boolean {
    switch (step.kind) {
      case 'create': {
        const key = generated.get(step.slot);
        if (key === undefined) return false;
        const { lane } = SLOTS[step.slot];
        const selector = slotSelector(domain, step.slot);
        const attributes = { selector, lane, slot: step.slot, state: 'pending' } as const;
        dkimKeys.insert(sealKey(seal, key, domain.domain_id, attributes, now));
        return true;
      }
      case 'delete':
        dkimKeys.remove(step.key.key_id);
        return true;
      default:
        dkimKeys.setState(step.key.key_id, STATES[step.kind], now);
        return true;
    }
  }

  return {
    /** Looks up the records of the domain's slots that are in use or could be. */
    observe: async (
      view: DnsView,
      domain: DomainRow,
      keys: readonly DkimKeyRow[],
    ): Promise<SlotObservations> => {
      const used = keys.flatMap(({ slot }) => slot ?? []);
      const slots = new Set<KeySlot>([...optionalSlots(platform.keyPolicy), ...used]);
      // Without further slots nothing can rotate.
      if (slots.size === 1 && slots.has('s')) return {};
      slots.add('s');
      const entries = [...slots].map(async (slot) => {
        const key = keys.find((row) => row.slot === slot);
        return [slot, await observeSlot(view, domain, slot, key, platform)] as const;
      });
      return Object.fromEntries(await Promise.all(entries));
    },

    /** Generates the keys that the domain needs; they are stored by `apply`. */
    generate: async (domain: DomainRow, observations: SlotObservations): Promise<GeneratedKeys> => {
      const generated = new Map<KeySlot, KeyObject>();
      for (const step of plan(tables.dkimKeys.of(domain.domain_id), observations, clock.now())) {
        if (step.kind !== 'create') continue;
        const isEd25519 = SLOTS[step.slot].algorithm === 'ed25519';
        generated.set(step.slot, isEd25519 ? generateEd25519Key() : await keyQueue.generateInBackground());
      }
      return generated;
    },

    /** Records the steps that are due, inside a unit of work; `report` follows when it is committed. */
    apply: (
      tx: Tables,
      domain: DomainRow,
      observations: SlotObservations,
      generated: GeneratedKeys,
    ): AppliedSteps => {
      const now = clock.now();
      const taken: AppliedSteps['taken'] = [];
      for (const step of plan(tx.dkimKeys.of(domain.domain_id), observations, now)) {
        if (!take(tx, domain, step, generated, now)) return { taken, dueAt: now };
        const slot = step.kind === 'create' ? step.slot : step.key.slot;
        taken.push({ kind: step.kind, selector: slot === null ? undefined : slotSelector(domain, slot) });
      }
      const waiting = tx.dkimKeys
        .of(domain.domain_id)
        .filter(
          ({ slot, state, changed_at: at }) =>
            slot !== null && state === 'pending' && now - at < MIN_PUBLISHED_MS,
        )
        .map(({ changed_at: at }) => at + MIN_PUBLISHED_MS);
      return { taken, dueAt: waiting.length === 0 ? null : Math.min(...waiting) };
    },

    /** Logs and counts steps that are on disk. */
    report: ({ domain_id: domainId, name }: DomainRow, taken: AppliedSteps['taken']): void => {
      for (const { kind, selector } of taken) {
        log.info(
          { domainId, domain: name, selector, step: kind },
          kind === 'deactivate' ? 'DKIM key deactivated: its CNAME record is missing' : 'DKIM key changed',
        );
        onStep(kind);
      }
    },
  };
}

const STATES: Record<Exclude<KeyStepKind, 'create' | 'delete'>, DkimKeyState> = {
  activate: 'active',
  deactivate: 'pending',
  retire: 'retiring',
  revoke: 'revoked',
};

async function observeSlot(
  view: DnsView,
  domain: DomainRow,
  slot: KeySlot,
  key: DkimKeyRow | undefined,
  platform: Platform,
): Promise<SlotObservation> {
  const alias = await view.cname(slotRecordName(domain, slot));
  const target = slotHost(platform, domain.alt_domain_id, slot);
  const delegated =
    alias.kind === 'unknown' ? null : alias.kind === 'records' && alias.records.includes(target);
  const canBeFound = key !== undefined && key.state !== 'revoked' && delegated !== null;
  if (!canBeFound) return { delegated, found: 'unknown' };
  const published = { domain: domain.name, selector: key.selector, publicKey: key.public_key };
  return { delegated, found: (await checkKey(view, published)).verdict };
}

/** Counts the steps of keys; all steps have a series from the start. */
export function registerKeySteps(registry: Registry): (step: KeyStepKind) => void {
  const steps = new Counter({
    name: 'postrider_dkim_key_steps_total',
    help: "Steps of DKIM keys in the platform's zone: create, activate, deactivate, retire, revoke, delete.",
    labelNames: ['step'],
    registers: [registry],
  });
  for (const step of ['create', 'delete', ...Object.keys(STATES)]) steps.inc({ step }, 0);
  return (step) => steps.inc({ step });
}
