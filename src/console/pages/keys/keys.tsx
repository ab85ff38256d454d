import { useState } from 'preact/hooks';
import { operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import { addressOf, type DataOf } from '../../operations.ts';
import { CreationDrawer } from '../../parts/drawer.tsx';
import { Pager } from '../../parts/pager.tsx';
import { SecretDialog } from '../../parts/secret-dialog.tsx';
import { Time } from '../../parts/time.tsx';
import { toast } from '../../parts/toast.tsx';
import { Chip, Empty, Loaded, Outcome, Page, RowActions, Table, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { KeyCreation, type NewKey } from './creation.tsx';
import { QuickStart } from './quick-start.tsx';

type ListedKey = DataOf<'/web-setup/keys'>['keys'][number];

/** The keys of the account, and how a program uses one. */
export function KeysPage() {
  const { t } = useTexts();
  const { location } = useNavigation();
  const { accountId, may } = useMember();
  const { language, lastKey } = location.query;
  const list = useOperation('/web-setup/keys', { lastKey });
  const [created, setCreated] = useState<NewKey | null>(null);
  const { outcome, run } = useAction();
  const revoke = ({ keyId }: ListedKey) =>
    run(async () => {
      await operate('delete', '/web-setup/keys/{keyId}', { account: accountId, parameters: { keyId } });
      list.reload();
      toast(t('keys.revoked', { key: keyId }));
      return '';
    });
  return (
    <Page
      title={t('page.keys')}
      question={t('keys.question')}
      curl={addressOf('/web-setup/keys', { lastKey })}
      actions={
        may('createKey') && (
          <CreationDrawer title={t('keys.create')}>
            {(close) => (
              <KeyCreation
                onCreated={(key) => {
                  close();
                  setCreated(key);
                  list.reload();
                }}
              />
            )}
          </CreationDrawer>
        )
      }
    >
      {created !== null && (
        <SecretDialog
          title={t('keys.new')}
          hint={t('keys.new.once')}
          secrets={[{ value: created.secret, copyLabel: t('keys.new.copy') }]}
          onStored={() => {
            setCreated(null);
            toast(t('keys.created'));
          }}
        />
      )}
      <Loaded data={list}>
        {({ keys, nextKey }) => (
          <>
            {keys.length === 0 ? (
              <Empty title={t('keys.empty')} icon="key-round">
                <p>{t('keys.empty.hint')}</p>
              </Empty>
            ) : (
              <Table
                label={t('page.keys')}
                isList
                heads={[
                  t('people.name'),
                  t('keys.scopes'),
                  { text: t('messages.created'), end: true },
                  { text: t('keys.lastUse'), end: true },
                  { text: t('people.actions'), unseen: true },
                ]}
              >
                {keys.map((key) => (
                  <KeyRow key={key.keyId} of={key} onRevoke={may('revokeKey') ? revoke : null} />
                ))}
              </Table>
            )}
            <Pager
              path="keys"
              filters={{ language }}
              nextKey={nextKey}
              firstLabel={t('keys.first')}
              nextLabel={t('keys.more')}
            />
          </>
        )}
      </Loaded>
      <Outcome of={outcome} />
      <QuickStart />
    </Page>
  );
}

function KeyRow({
  of: key,
  onRevoke,
}: {
  of: ListedKey;
  onRevoke: ((key: ListedKey) => Promise<void>) | null;
}) {
  const { t, time } = useTexts();
  const { keyId, name, scopes, lastUsedAt, createdAt, revokedAt } = key;
  return (
    <tr>
      <th scope="row">
        {name || keyId}
        {name !== '' && <p class="small value">{keyId}</p>}
      </th>
      <td class="second">
        {[scopes.map((scope) => t(`keys.scope.${scope}`)), restrictionsOf(key, t)]
          .filter((list) => list.length > 0)
          .map((list) => list.join(', '))
          .join(' · ')}
      </td>
      <td>
        <Time at={createdAt} />
      </td>
      <td class="when">{lastUsedAt === null ? t('domains.never') : <Time at={lastUsedAt} />}</td>
      <td class="menu">
        {revokedAt !== null ? (
          <Chip kind="idle">{t('keys.revokedAt', { time: time(revokedAt) })}</Chip>
        ) : (
          onRevoke !== null && (
            <RowActions
              label={name || keyId}
              actions={[
                {
                  isDanger: true,
                  label: t('keys.revoke'),
                  question: t('keys.revoke.confirm', { key: name || keyId }),
                  action: () => onRevoke(key),
                },
              ]}
            />
          )
        )}
      </td>
    </tr>
  );
}

function restrictionsOf(key: ListedKey, t: ReturnType<typeof useTexts>['t']): string[] {
  return [
    ...(key.livemode ? [] : [t('keys.test')]),
    ...(key.sigv4 ? [t('keys.sigv4')] : []),
    ...key.allowIps,
    ...key.allowFrom,
    ...(key.allowEssential ? [] : [t('keys.noEssential')]),
    ...(key.strictCompliance ? [t('keys.strict')] : []),
  ];
}
