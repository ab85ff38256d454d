import type { DataOf } from '../../operations.ts';
import { Stepper } from '../../parts/stepper.tsx';
import { Tabs } from '../../parts/tabs.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';

type DomainStatus = DataOf<'/web-setup/domains/{domainId}/last-check'>['status'];

/** The way from a name to the first message. */
export const STEPS = ['add', 'records', 'check', 'message'] as const;
/** What can be changed later. */
export const TABS = ['dmarc', 'dkim', 'settings'] as const;
export type View = (typeof STEPS)[number] | (typeof TABS)[number];

interface StepsProps {
  /** Null: the domain is not registered yet. */
  domainId: string | null;
  current: View;
  status: DomainStatus | null;
}

/** The steps of a domain until it is verified, and its other views; each is an address. */
export function Steps({ domainId, current, status }: StepsProps) {
  const { t } = useTexts();
  const { href } = useNavigation();
  const address = (step: View) => href(`domains/${encodeURIComponent(domainId ?? '')}`, { step });
  const isVerified = status === 'SUCCESS';
  const tabs: [View, string][] = [
    ...(isVerified
      ? ([
          ['check', t('domains.tab.records')],
          ['message', t('domains.step.message')],
        ] satisfies [View, string][])
      : []),
    ...TABS.map((tab): [View, string] => [tab, t(`domains.tab.${tab}`)]),
  ];
  return (
    <>
      {!isVerified && (
        <Stepper
          label={t('domains.steps')}
          steps={STEPS.map((step) => ({
            name: t(`domains.step.${step}`),
            isDone: step === 'add' && domainId !== null,
            address: domainId === null || step === 'add' ? undefined : address(step),
          }))}
          current={STEPS.findIndex((step) => step === current)}
        />
      )}
      {domainId !== null && (
        <Tabs
          label={t('domains.more')}
          tabs={tabs.map(([view, name]) => ({
            name,
            address: address(view),
            isCurrent: view === current || (view === 'check' && current === 'records'),
          }))}
        />
      )}
    </>
  );
}
