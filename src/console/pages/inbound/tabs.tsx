import { useOperation } from '../../data.ts';
import type { DataOf } from '../../operations.ts';
import { Tabs } from '../../parts/tabs.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';

export const ROUTES = '/web-setup/inbound-routes';

export type InboundRoute = DataOf<typeof ROUTES>['routes'][number];

/** More are not offered as a filter. */
const LISTED_ROUTES = 200;

/** The lists of the section: received mail, and the routes by which it comes. */
export function InboundTabs({ current }: { current: 'mail' | 'routes' }) {
  const { t } = useTexts();
  const { href } = useNavigation();
  return (
    <Tabs
      label={t('page.inbound')}
      tabs={[
        { name: t('inbound.tab.mail'), address: href('inbound'), isCurrent: current === 'mail' },
        { name: t('inbound.tab.routes'), address: href('inbound/routes'), isCurrent: current === 'routes' },
      ]}
    />
  );
}

/** The newest routes of the account, and the name of one: its id if it was deleted. Empty until they are read. */
export function useRoutes(): { routes: readonly InboundRoute[]; nameOf: (routeId: string) => string } {
  const { value } = useOperation(ROUTES, { limit: LISTED_ROUTES });
  const routes = value?.routes ?? [];
  return { routes, nameOf: (routeId) => routes.find((each) => each.routeId === routeId)?.name ?? routeId };
}
