import { operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { FactList } from '../../parts/fact-list.tsx';
import { Icon } from '../../parts/icon/icon.tsx';
import { Time } from '../../parts/time.tsx';
import { toast } from '../../parts/toast.tsx';
import { Card, Chip, Loaded, Notice, Outcome, Page, RowActions, Table, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { SuppressionTable } from '../suppressions/suppression-table.tsx';
import { ConsentHistory } from './consent-history.tsx';
import { ConsentProofPage } from './consent-proof.tsx';
import { GlobalStatus, type ListedContact, nameOf } from './contact-list.tsx';
import { savePersonalData } from './personal-data.ts';

const PATH = '/web-setup/contacts/{contactIdentifier}';

/** The pages of a contact. `isProof`: the proof of its consent. */
export function ContactPage({ identifier, isProof }: { identifier: string; isProof: boolean }) {
  return isProof ? <ConsentProofPage identifier={identifier} /> : <WholeContact identifier={identifier} />;
}

/** A contact: profile, groups, consent history, unsubscription and erasure. */
function WholeContact({ identifier }: { identifier: string }) {
  const { t, time } = useTexts();
  const { href, go } = useNavigation();
  const { accountId } = useMember();
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
      toast(t('contacts.unsubscribed', { contact: name }));
      return '';
    });
  const save = () =>
    run(async () => {
      const file = `${identifier}.json`;
      await savePersonalData(identifier, accountId, file);
      toast(t('messages.content.saved', { file }));
      return '';
    });
  const erase = () =>
    run(async () => {
      await operate('delete', PATH, { account: accountId, parameters });
      go(href('contacts'));
      return '';
    });
  return (
    <Page
      title={name}
      chip={data.value !== null && <GlobalStatus of={data.value.contact} />}
      actions={
        data.value !== null && (
          <>
            <a class="button" href={href('messages', { recipient: data.value.contact.email ?? identifier })}>
              {t('contacts.messages')}
            </a>
            <Actions
              contact={data.value.contact}
              name={name}
              save={save}
              unsubscribe={unsubscribe}
              erase={erase}
            />
          </>
        )
      }
      curl={addressOf(PATH, parameters)}
    >
      {outcome?.failed && <Outcome of={outcome} />}
      <Loaded data={data}>
        {({ contact, memberships }) => (
          <>
            {contact.erasureRequestedAt !== undefined && (
              <Notice
                kind="warn"
                title={t('contacts.erasureRequested', { time: time(contact.erasureRequestedAt) })}
              >
                <p>{t('contacts.erasureRequested.hint')}</p>
              </Notice>
            )}
            {contact.pausedUntil !== undefined && (
              <Notice title={t('contacts.paused', { time: time(contact.pausedUntil) })} />
            )}
            <div class="columns">
              <Card title={t('contacts.profile')}>
                <Profile of={contact} />
              </Card>
              <div>
                <Card title={t('page.groups')}>
                  <Memberships of={memberships} />
                </Card>
                <Card title={t('page.suppressions')}>
                  <Suppressions key={`suppressions ${contact.updatedAt}`} identifier={identifier} />
                </Card>
              </div>
            </div>
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

interface ActionsProps {
  contact: ListedContact;
  name: string;
  save: () => Promise<void>;
  unsubscribe: () => Promise<void>;
  erase: () => Promise<void>;
}

function Actions({ contact, name, save, unsubscribe, erase }: ActionsProps) {
  const { t } = useTexts();
  const { may } = useMember();
  const actions = [
    ...(may('exportPersonalData') ? [{ label: t('contacts.personalData'), action: save }] : []),
    ...(may('updateContact') && contact.globalStatus === 'active'
      ? [
          {
            label: t('contacts.unsubscribe'),
            question: t('contacts.unsubscribe.confirmOne', { contact: name }),
            action: unsubscribe,
          },
        ]
      : []),
    ...(may('eraseContact')
      ? [
          {
            isDanger: true,
            label: t('contacts.erase'),
            question: t('contacts.erase.confirmOne', { contact: name }),
            action: erase,
          },
        ]
      : []),
  ];
  return actions.length === 0 ? null : <RowActions label={name} actions={actions} />;
}

function Memberships({ of }: { of: DataOf<typeof PATH>['memberships'] }) {
  const { t } = useTexts();
  if (of.length === 0) return <p class="all-well">{t('contacts.noGroups')}</p>;
  return (
    <Table
      label={t('page.groups')}
      isList
      heads={[
        t('contacts.group'),
        t('messages.status'),
        t('contacts.source'),
        { text: t('groups.since'), end: true },
      ]}
    >
      {of.map((each) => (
        <tr key={each.subscriptionGroupId}>
          <th scope="row">
            <GroupLink id={each.subscriptionGroupId} />
          </th>
          <td class="aside">
            <Chip kind={each.isActive ? 'ok' : 'idle'}>
              {t(each.isActive ? 'groups.status.active' : 'groups.status.inactive')}
            </Chip>
          </td>
          <td class="second">{each.source}</td>
          <td class="when">
            <Time at={each.joinedAt} />
          </td>
        </tr>
      ))}
    </Table>
  );
}

function Profile({ of: contact }: { of: ListedContact }) {
  const { t, time } = useTexts();
  const fields: [string, string][] = [
    [t('signIn.email'), contact.email ?? ''],
    [t('contacts.phone'), contact.phone ?? ''],
    [t('groups.signUp.firstName'), contact.firstName ?? ''],
    [t('groups.signUp.lastName'), contact.lastName ?? ''],
    [t('contacts.language'), contact.language ?? ''],
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
    <div class="card-body">
      <FactList facts={fields} />
    </div>
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
          <p class="all-well">
            <Icon name="circle-check" />
            {t('contacts.notSuppressed')}
          </p>
        ) : (
          <SuppressionTable
            suppressions={suppressions}
            address={href(`suppressions/${encodeURIComponent(identifier)}`)}
          />
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
