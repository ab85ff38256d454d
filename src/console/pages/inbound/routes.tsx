import type { ComponentProps } from 'preact';
import { useState } from 'preact/hooks';
import { operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import { addressOf } from '../../operations.ts';
import { CreationDrawer, OpenDrawer } from '../../parts/drawer.tsx';
import { Pager } from '../../parts/pager.tsx';
import { Time } from '../../parts/time.tsx';
import { toast } from '../../parts/toast.tsx';
import { Chip, Empty, Loaded, Notice, Outcome, Page, RowActions, Table, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { RouteForm } from './route-form.tsx';
import { type InboundRoute, InboundTabs, ROUTES } from './tabs.tsx';

const ONE = `${ROUTES}/{routeId}` as const;

/** The addresses at which the account receives mail. A route is opened over the list (`route` of the address). */
export function InboundRoutesPage() {
  const { t } = useTexts();
  const { location, href, go } = useNavigation();
  const { accountId, may } = useMember();
  const { lastKey, route: routeId } = location.query;
  const parameters = { limit: 50, lastKey };
  const list = useOperation(ROUTES, parameters);
  const domains = useOperation('/web-setup/domains');
  const [created, setCreated] = useState<InboundRoute | null>(null);
  const { outcome, run } = useAction();
  const remove = (route: InboundRoute) =>
    run(async () => {
      await operate('delete', ONE, { account: accountId, parameters: { routeId: route.routeId } });
      list.reload();
      setCreated(null);
      toast(t('app.deleted'));
      return '';
    });
  return (
    <Page
      title={t('page.inbound')}
      question={t('inbound.routes.question')}
      curl={addressOf(ROUTES, parameters)}
      actions={
        may('createInboundRoute') && (
          <CreationDrawer title={t('inbound.routes.new')}>
            {(close) => (
              <RouteForm
                route={null}
                domains={domains}
                onSaved={(route) => {
                  close();
                  setCreated(route);
                  list.reload();
                }}
              />
            )}
          </CreationDrawer>
        )
      }
    >
      <InboundTabs current="routes" />
      {created !== null && <NextStep of={created} />}
      <Outcome of={outcome} />
      <Loaded data={list} isList>
        {({ routes, nextKey }) => (
          <>
            {routes.length === 0 ? (
              <Empty title={t('inbound.routes.empty')} icon="route">
                <p>{t('inbound.routes.empty.hint')}</p>
              </Empty>
            ) : (
              <Table
                label={t('inbound.tab.routes')}
                isList
                heads={[
                  t('people.name'),
                  t('inbound.routes.match'),
                  t('messages.status'),
                  t('inbound.routes.action'),
                  { text: t('messages.created'), end: true },
                  { text: t('people.actions'), unseen: true },
                ]}
              >
                {routes.map((each) => (
                  <tr key={each.routeId}>
                    <th scope="row">
                      <a href={href('inbound/routes', { lastKey, route: each.routeId })}>{each.name}</a>
                    </th>
                    <td class="second">{each.match}</td>
                    <td class="aside">
                      <Chip kind={each.isActive ? 'ok' : 'idle'}>
                        {t(each.isActive ? 'inbound.routes.active' : 'inbound.routes.inactive')}
                      </Chip>
                    </td>
                    <td>{t(`inbound.routes.action.${each.action}`)}</td>
                    <td class="when">
                      <Time at={each.createdAt} />
                    </td>
                    <td class="menu">
                      {may('deleteInboundRoute') && (
                        <RowActions
                          label={each.name}
                          actions={[
                            {
                              isDanger: true,
                              label: t('webhooks.delete'),
                              question: t('inbound.routes.delete.confirm', {
                                name: each.name,
                                match: each.match,
                              }),
                              action: () => remove(each),
                            },
                          ]}
                        />
                      )}
                    </td>
                  </tr>
                ))}
              </Table>
            )}
            <Pager path="inbound/routes" filters={{}} nextKey={nextKey} />
          </>
        )}
      </Loaded>
      {routeId !== undefined && (
        <OpenRoute
          key={routeId}
          routeId={routeId}
          domains={domains}
          onClose={() => go(href('inbound/routes', { lastKey }))}
          onSaved={list.reload}
        />
      )}
    </Page>
  );
}

/** A route receives nothing before other servers find this one. */
function NextStep({ of: { match, domainId } }: { of: InboundRoute }) {
  const { t } = useTexts();
  const { href } = useNavigation();
  return (
    <Notice title={t('inbound.routes.next', { host: match.slice(match.lastIndexOf('@') + 1) })}>
      <p>
        <a href={href(`domains/${encodeURIComponent(domainId)}`, { step: 'records' })}>
          {t('inbound.routes.records')}
        </a>
      </p>
    </Notice>
  );
}

interface OpenRouteProps {
  routeId: string;
  domains: ComponentProps<typeof RouteForm>['domains'];
  onClose: () => void;
  onSaved: () => void;
}

/** A route in a drawer, with the ways to its mail and to its record. */
function OpenRoute({ routeId, domains, onClose, onSaved }: OpenRouteProps) {
  const { t } = useTexts();
  const { href } = useNavigation();
  const data = useOperation(ONE, { routeId });
  return (
    <OpenDrawer title={data.value?.route.name ?? t('inbound.route')} onClose={onClose}>
      <Loaded data={data}>
        {({ route }) => (
          <>
            <p class="actions">
              <a class="button" href={href('inbound', { routeId })}>
                {t('inbound.routes.mail')}
              </a>
              <a
                class="button"
                href={href(`domains/${encodeURIComponent(route.domainId)}`, { step: 'records' })}
              >
                {t('inbound.routes.records')}
              </a>
            </p>
            <RouteForm
              key={route.updatedAt}
              route={route}
              domains={domains}
              onSaved={() => {
                onSaved();
                onClose();
                toast(t('inbound.routes.saved'));
              }}
            />
          </>
        )}
      </Loaded>
    </OpenDrawer>
  );
}
