import { useOperation } from '../../data.ts';
import { Pager } from '../../parts/pager.tsx';
import { Empty, Loaded, Table } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';

interface ConsentHistoryProps {
  /** The contact. */
  identifier: string;
  page: string;
}

/** Every choice of a contact that was recorded, with its evidence; it can be printed. */
export function ConsentHistory({ identifier, page }: ConsentHistoryProps) {
  const { t, time, named } = useTexts();
  const { location } = useNavigation();
  const history = useOperation('/web-setup/contacts/{contactIdentifier}/consent-history', {
    contactIdentifier: identifier,
    limit: 200,
    lastKey: location.query['lastKey'],
  });
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
