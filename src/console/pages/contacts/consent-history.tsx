import { useOperation } from '../../data.ts';
import { Pager } from '../../parts/pager.tsx';
import { Card, Loaded, Table } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';

interface ConsentHistoryProps {
  /** The contact. */
  identifier: string;
  page: string;
}

/** Every choice of a contact that was recorded, with its evidence. */
export function ConsentHistory({ identifier, page }: ConsentHistoryProps) {
  const { t, time, named } = useTexts();
  const { location, href } = useNavigation();
  const history = useOperation('/web-setup/contacts/{contactIdentifier}/consent-history', {
    contactIdentifier: identifier,
    limit: 200,
    lastKey: location.query['lastKey'],
  });
  return (
    <Card
      title={t('contacts.history')}
      action={
        <a class="button small screen" href={href(`contacts/${encodeURIComponent(identifier)}/proof`)}>
          {t('contacts.proof')}
        </a>
      }
    >
      <Loaded data={history} isList>
        {({ consents, nextKey }) => (
          <>
            {consents.length === 0 ? (
              <p class="all-well">{t('contacts.history.none')}</p>
            ) : (
              <Table
                label={t('contacts.history')}
                isList
                heads={[
                  t('contacts.choiceMade'),
                  t('contacts.evidence'),
                  t('contacts.recordedBy'),
                  { text: t('contacts.recorded'), end: true },
                ]}
              >
                {consents.map((each) => (
                  <tr key={`${each.recordedAt} ${each.action} ${each.subscriptionGroupId}`}>
                    <th scope="row">
                      {t(`contacts.action.${each.action}`)}
                      {each.subscriptionGroupId && <p class="small">{each.subscriptionGroupId}</p>}
                    </th>
                    <td class="second">
                      {each.method !== undefined && methodText(each.method, named)}
                      {[each.details, each.ipAddress, each.userAgent, time(each.timestamp)]
                        .filter(Boolean)
                        .map((line) => (
                          <p class="small" key={line}>
                            {line}
                          </p>
                        ))}
                    </td>
                    <td class="aside">
                      {each.recordedBy === 'recipient' ? t('contacts.byRecipient') : each.recordedBy}
                    </td>
                    <td class="when">{time(each.recordedAt)}</td>
                  </tr>
                ))}
              </Table>
            )}
            <Pager path={page} filters={{}} nextKey={nextKey} />
          </>
        )}
      </Loaded>
    </Card>
  );
}

/** How the person consented, or how they opted out. */
export function methodText(method: string, named: (prefix: string, name: string) => string): string {
  const consented = named('groups.consent', method);
  return consented === method ? named('contacts.optOut', method) : consented;
}
