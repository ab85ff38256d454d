import { operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import { addressOf } from '../../operations.ts';
import { Time } from '../../parts/time.tsx';
import { Chip, Confirmed, Empty, Loaded, Outcome, Page, Table, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { ConsentHistory } from './consent-history.tsx';
import { GlobalStatus, type ListedContact, nameOf } from './contact-list.tsx';

const PATH = '/web-setup/contacts/{contactIdentifier}';

/** A contact: profile, groups, consent history, unsubscription and erasure. */
export function ContactPage({ identifier }: { identifier: string }) {
  const { t } = useTexts();
  const { href, go } = useNavigation();
  const { accountId, may } = useMember();
  const parameters = { contactIdentifier: identifier };
  const data = useOperation(PATH, parameters);
  const { outcome, run } = useAction();
  const name = data.value === null ? identifier : nameOf(data.value.contact);
  const unsubscribe = () =>
    run(async () => {
      await operate('patch', PATH, {
        account: accountId,
        parameters,
        body: { globalStatus: 'unsubscribed' },
      });
      data.reload();
      return t('contacts.unsubscribed', { contact: name });
    });
  const erase = () =>
    run(async () => {
      await operate('delete', PATH, { account: accountId, parameters });
      go(href('contacts'));
      return '';
    });
  return (
    <Page title={name} question={t('contacts.question')} curl={addressOf(PATH, parameters)}>
      <p class="screen">
        <a href={href('contacts')}>{t('app.back')}</a>
      </p>
      <Loaded data={data}>
        {({ contact, memberships }) => (
          <>
            <Profile of={contact} />
            <p class="actions screen">
              <a class="button" href={href('messages', { recipient: contact.email ?? identifier })}>
                {t('contacts.messages')}
              </a>
              {may('updateContact') && contact.globalStatus === 'active' && (
                <Confirmed
                  label={t('contacts.unsubscribe')}
                  question={t('contacts.unsubscribe.confirmOne', { contact: name })}
                  action={unsubscribe}
                />
              )}
              {may('eraseContact') && (
                <Confirmed
                  isDanger
                  label={t('contacts.erase')}
                  question={t('contacts.erase.confirmOne', { contact: name })}
                  action={erase}
                />
              )}
            </p>
            <Outcome of={outcome} />
            <h2>{t('page.groups')}</h2>
            {memberships.length === 0 ? (
              <Empty title={t('contacts.noGroups')} />
            ) : (
              <Table
                label={t('page.groups')}
                heads={[t('contacts.group'), t('messages.status'), t('groups.since'), t('contacts.source')]}
              >
                {memberships.map((each) => (
                  <tr key={each.subscriptionGroupId}>
                    <th scope="row">
                      <GroupLink id={each.subscriptionGroupId} />
                    </th>
                    <td>
                      <Chip kind={each.isActive ? 'ok' : 'bad'}>
                        {t(each.isActive ? 'groups.status.active' : 'groups.status.inactive')}
                      </Chip>
                    </td>
                    <td>
                      <Time at={each.joinedAt} />
                    </td>
                    <td>{each.source}</td>
                  </tr>
                ))}
              </Table>
            )}
            <h2>{t('page.suppressions')}</h2>
            <Suppressions key={`suppressions ${contact.updatedAt}`} identifier={identifier} />
            <h2>{t('contacts.history')}</h2>
            <ConsentHistory
              key={contact.updatedAt}
              identifier={identifier}
              page={`contacts/${encodeURIComponent(identifier)}`}
            />
          </>
        )}
      </Loaded>
    </Page>
  );
}

function Profile({ of: contact }: { of: ListedContact }) {
  const { t, time } = useTexts();
  const fields: [string, string][] = [
    [t('signIn.email'), contact.email ?? ''],
    [t('contacts.phone'), contact.phone ?? ''],
    [t('groups.signUp.firstName'), contact.firstName ?? ''],
    [t('groups.signUp.lastName'), contact.lastName ?? ''],
    [
      t('groups.consent'),
      contact.consentMethod === undefined
        ? t('contacts.noConsent')
        : t(`groups.consent.${contact.consentMethod}`),
    ],
    [t('groups.consent.details'), contact.consentDetails ?? ''],
    [t('contacts.consentTime'), time(contact.consentTimestamp)],
    [t('contacts.consentAddress'), contact.consentIpAddress ?? ''],
    [t('contacts.consentBrowser'), contact.consentUserAgent ?? ''],
    [t('contacts.source'), contact.source],
    [t('messages.created'), time(contact.createdAt)],
    [t('contacts.identifier'), contact.contactIdentifier],
    ...Object.entries(contact.customFields).map(([field, value]): [string, string] => [
      field,
      typeof value === 'string' ? value : JSON.stringify(value),
    ]),
  ];
  return (
    <>
      <p>
        <GlobalStatus of={contact} />
      </p>
      <dl class="facts">
        {fields
          .filter(([, value]) => value !== '')
          .map(([field, value], index) => (
            <div key={`${index} ${field}`}>
              <dt>{field}</dt>
              <dd class="value">{value}</dd>
            </div>
          ))}
      </dl>
    </>
  );
}

/** Why mail to the contact is blocked: opt-outs, complaints, bounces. */
function Suppressions({ identifier }: { identifier: string }) {
  const { t } = useTexts();
  const { href } = useNavigation();
  const list = useOperation('/web-setup/suppressions', { email: identifier });
  return (
    <Loaded data={list}>
      {({ suppressions }) =>
        suppressions.length === 0 ? (
          <Empty title={t('contacts.notSuppressed')} />
        ) : (
          <Table
            label={t('page.suppressions')}
            heads={[t('suppressions.reason'), t('suppressions.stream'), t('suppressions.since')]}
          >
            {suppressions.map((each) => (
              <tr key={`${each.reason} ${each.stream}`}>
                <th scope="row">
                  <a href={href(`suppressions/${encodeURIComponent(identifier)}`)}>
                    {t(`suppressions.reason.${each.reason}`)}
                  </a>
                </th>
                <td>{t(`suppressions.stream.${each.stream}`)}</td>
                <td>
                  <Time at={each.createdAt} />
                </td>
              </tr>
            ))}
          </Table>
        )
      }
    </Loaded>
  );
}

function GroupLink({ id }: { id: string }) {
  const { href } = useNavigation();
  const group = useOperation('/web-setup/contacts/subscription-groups/{subscriptionGroupId}', {
    subscriptionGroupId: id,
  });
  return <a href={href(`groups/${encodeURIComponent(id)}`)}>{group.value?.group.name ?? id}</a>;
}
