import type * as z from 'zod';
import type { consent } from '../../../http/api/contacts/contacts.ts';
import { withQuery } from '../../api.ts';
import { useData } from '../../data.ts';
import { Pager } from '../../parts/pager.tsx';
import { Empty, Loaded, Table } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';

type Consent = z.output<typeof consent>;

interface ConsentHistoryProps {
  /** Path of the contact in the API. */
  path: string;
  page: string;
}

/** Every choice of a contact that was recorded, with its evidence; it can be printed. */
export function ConsentHistory({ path, page }: ConsentHistoryProps) {
  const { t, time, named } = useTexts();
  const { location } = useNavigation();
  const history = useData<{ consents: Consent[]; nextKey?: string }>(
    withQuery(`${path}/consent-history`, { limit: '200', lastKey: location.query['lastKey'] }),
  );
  return (
    <Loaded data={history}>
      {({ consents, nextKey }) => (
        <>
          {consents.length === 0 ? (
            <Empty title={t('contacts.history.none')} />
          ) : (
            <>
              <Table
                label={t('contacts.history')}
                heads={[
                  t('contacts.recorded'),
                  t('contacts.choiceMade'),
                  t('contacts.evidence'),
                  t('contacts.recordedBy'),
                ]}
              >
                {consents.map((each) => (
                  <tr key={`${each.recordedAt} ${each.action} ${each.subscriptionGroupId}`}>
                    <td>{time(each.recordedAt)}</td>
                    <th scope="row">
                      {t(`contacts.action.${each.action}`)}
                      <p class="small">{each.subscriptionGroupId}</p>
                    </th>
                    <td class="value">
                      {each.method !== undefined && methodText(each.method, named)}
                      {[each.details, each.ipAddress, each.userAgent, time(each.timestamp)]
                        .filter(Boolean)
                        .map((line) => (
                          <p class="small" key={line}>
                            {line}
                          </p>
                        ))}
                    </td>
                    <td>{each.recordedBy === 'recipient' ? t('contacts.byRecipient') : each.recordedBy}</td>
                  </tr>
                ))}
              </Table>
              <p class="screen">
                <button class="button" type="button" onClick={() => window.print()}>
                  {t('contacts.print')}
                </button>
              </p>
            </>
          )}
          <Pager path={page} filters={{}} nextKey={nextKey} />
        </>
      )}
    </Loaded>
  );
}

/** How the person consented, or how they opted out. */
function methodText(method: string, named: (prefix: string, name: string) => string): string {
  const consented = named('groups.consent', method);
  return consented === method ? named('contacts.optOut', method) : consented;
}
