import { type Refusal, refuse } from '../core/refusal.ts';
import type { Stream } from '../store/domains/domains.ts';

/*
 * Use cases: what a domain sends, and in which region. Two for each region of the configuration, with the ids
 * `<use case>-<region code>`.
 */

export interface RegionSetting {
  code: string;
  name: string;
}

export interface OfferedUseCase {
  id: string;
  useCase: Stream;
  useCaseName: string;
  description: string;
  icon: string;
  region: RegionSetting;
}

const KINDS: Record<Stream, { name: string; description: string; icon: string }> = {
  tx: {
    name: 'Transactional',
    description:
      'Messages that one person expects: password resets, order confirmations, invoices, system notifications.',
    icon: '🔔',
  },
  mk: {
    name: 'Marketing',
    description: 'Newsletters, offers and campaigns to people who have agreed to get them.',
    icon: '📣',
  },
};

/** `Transactional` or `Marketing`: `useCaseLabel` in the API. */
export function useCaseLabel(useCase: Stream): string {
  return KINDS[useCase].name;
}

/**
 * `region`: its code. The result, `tx-eu` for example, is not checked against the configuration; `findUseCase` does
 * that.
 */
export function useCaseId(useCase: Stream, region: string): string {
  return `${useCase}-${region}`;
}

/** All use cases; transactional first in each region, regions in the order of the configuration. */
export function offeredUseCases(regions: readonly RegionSetting[]): OfferedUseCase[] {
  return regions.flatMap(({ code, name }) =>
    (['tx', 'mk'] as const).map((useCase) => ({
      id: useCaseId(useCase, code),
      useCase,
      useCaseName: KINDS[useCase].name,
      description: KINDS[useCase].description,
      icon: KINDS[useCase].icon,
      region: { code, name },
    })),
  );
}

/** Refuses an id that `regions` do not offer with `USE_CASE_NOT_FOUND`; the message lists the available ids. */
export function findUseCase(regions: readonly RegionSetting[], id: string): OfferedUseCase | Refusal {
  const offered = offeredUseCases(regions);
  return (
    offered.find((useCase) => useCase.id === id) ??
    refuse(
      'USE_CASE_NOT_FOUND',
      `There is no use case "${id}"; available: ${offered.map((useCase) => useCase.id).join(', ')}`,
    )
  );
}
