import { useOperation } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { FactList } from '../../parts/fact-list.tsx';
import { Icon } from '../../parts/icon/icon.tsx';
import { Card, Chip, type ChipKind, Loaded, Page } from '../../parts.tsx';
import { type TextKey, useTexts } from '../../texts.ts';
import { methodText } from './consent-history.tsx';

const PATH = '/web-setup/contacts/{contactIdentifier}/consent-proof';

type Proof = DataOf<typeof PATH>;

const KINDS: Record<Proof['status'], ChipKind> = {
  given: 'ok',
  opted_out: 'warn',
  withdrawn: 'warn',
  none: 'idle',
};

const STANDINGS = {
  given: 'contacts.action.given',
  opted_out: 'contacts.proof.opted_out',
  withdrawn: 'contacts.action.withdrawn',
  none: 'contacts.noConsent',
} as const satisfies Record<Proof['status'], TextKey>;

/** The evidence of a contact's consent, to be printed. */
export function ConsentProofPage({ identifier }: { identifier: string }) {
  const { t } = useTexts();
  const parameters = { contactIdentifier: identifier };
  const data = useOperation(PATH, parameters);
  return (
    <Page
      title={t('contacts.proof')}
      chip={
        data.value !== null && <Chip kind={KINDS[data.value.status]}>{t(STANDINGS[data.value.status])}</Chip>
      }
      actions={
        <button class="button" type="button" onClick={() => window.print()}>
          <Icon name="file-text" />
          {t('contacts.print')}
        </button>
      }
      curl={addressOf(PATH, parameters)}
    >
      <Loaded data={data}>{(proof) => <Evidence of={proof} />}</Loaded>
    </Page>
  );
}

function Evidence({ of: proof }: { of: Proof }) {
  const { t, time } = useTexts();
  const { consent } = proof;
  return (
    <>
      <Section title={t('contacts.profile')}>
        <FactList
          facts={[
            [t('signIn.email'), proof.email ?? ''],
            [t('contacts.phone'), proof.phone ?? ''],
            [t('groups.signUp.firstName'), proof.firstName ?? ''],
            [t('groups.signUp.lastName'), proof.lastName ?? ''],
            [t('contacts.source'), proof.source],
            [t('messages.created'), time(proof.createdAt)],
            [t('contacts.identifier'), proof.contactIdentifier],
            [t('contacts.proof.generated'), time(proof.generatedAt)],
          ]}
        />
      </Section>
      <Section title={t('contacts.proof.current')}>
        {consent === null ? <p>{t('contacts.noConsent')}</p> : <Choice of={consent} />}
      </Section>
      {proof.doubleOptIn.map((each) => (
        <Section key={each.formSentAt} title={t('contacts.proof.doubleOptIn', { group: each.form.group })}>
          <FactList
            facts={[
              [t('contacts.proof.form'), each.form.description ?? ''],
              [t('contacts.proof.formSent'), time(each.formSentAt)],
              [t('contacts.proof.mail'), each.confirmationMail?.messageId ?? t('contacts.proof.noMail')],
              [t('messages.sender'), each.confirmationMail?.from ?? ''],
              [t('messages.subject'), each.confirmationMail?.subject ?? ''],
              [t('contacts.proof.intro'), each.confirmationMail?.intro ?? ''],
              [t('contacts.proof.accepted'), time(each.confirmationMail?.acceptedAt)],
              [t('contacts.proof.delivered'), time(each.confirmationMail?.deliveredAt)],
              [t('contacts.proof.confirmed'), time(each.confirmedAt)],
              [t('contacts.consentAddress'), each.ipAddress ?? ''],
              [t('contacts.consentBrowser'), each.userAgent ?? ''],
            ]}
          />
        </Section>
      ))}
      <Section title={t('page.groups')}>
        {proof.memberships.length === 0 ? (
          <p>{t('contacts.noGroups')}</p>
        ) : (
          <FactList
            facts={proof.memberships.map((each): [string, string] => [
              each.groupName ?? each.subscriptionGroupId,
              [
                t(each.isActive ? 'groups.status.active' : 'groups.status.inactive'),
                time(each.joinedAt),
                each.source,
              ].join(' · '),
            ])}
          />
        )}
      </Section>
      {proof.history.map((each, n) => (
        // The history only grows.
        // biome-ignore lint/suspicious/noArrayIndexKey: entries have no id
        <Section key={n} title={`${n + 1}. ${t(`contacts.action.${each.action}`)}`}>
          <Choice of={each} />
        </Section>
      ))}
    </>
  );
}

function Section({ title, children }: { title: string; children: preact.ComponentChildren }) {
  return (
    <Card title={title}>
      <div class="card-body">{children}</div>
    </Card>
  );
}

/** A choice of the person with its evidence. */
function Choice({ of: each }: { of: NonNullable<Proof['consent']> & { groupName?: string } }) {
  const { t, time, named } = useTexts();
  return (
    <FactList
      facts={[
        [t('groups.consent'), each.method === undefined ? '' : methodText(each.method, named)],
        [t('contacts.group'), each.groupName ?? each.subscriptionGroupId ?? ''],
        [t('groups.consent.details'), each.details ?? ''],
        [t('contacts.consentTime'), time(each.timestamp)],
        [t('contacts.consentAddress'), each.ipAddress ?? ''],
        [t('contacts.consentBrowser'), each.userAgent ?? ''],
        [t('contacts.recorded'), time(each.recordedAt)],
        [
          t('contacts.recordedBy'),
          each.recordedBy === 'recipient' ? t('contacts.byRecipient') : each.recordedBy,
        ],
      ]}
    />
  );
}
