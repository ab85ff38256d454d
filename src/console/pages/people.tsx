import { useState } from 'preact/hooks';
import type { PresentedPerson } from '../../http/console/session-routes.ts';
import { request } from '../api.ts';
import { useConsoleData, useRefresh } from '../data.ts';
import { Button } from '../parts/button.tsx';
import { CreationDrawer } from '../parts/drawer.tsx';
import { ScopeChoice, useScope } from '../parts/scope.tsx';
import { SecretDialog } from '../parts/secret-dialog.tsx';
import { Time } from '../parts/time.tsx';
import { toast } from '../parts/toast.tsx';
import { Chip, Denied, Empty, Loaded, Outcome, Page, RowActions, Table, useAction } from '../parts.tsx';
import { useMember } from '../session.ts';
import { useTexts } from '../texts.ts';

type MemberRole = NonNullable<PresentedPerson['role']>;
const ROLES = ['owner', 'sender', 'author', 'developer', 'viewer'] as const satisfies MemberRole[];

/** A link that signs a person in: it is shown once. */
interface NewLink {
  email: string;
  link: string;
  expiresAt: string;
}

interface Invited {
  person: PresentedPerson;
  link?: string;
  expiresAt?: string;
}

/** The members of the account or, for operators, all people of the installation. */
export function PeoplePage() {
  const { t } = useTexts();
  const { isInstallation, account } = useScope();
  const { has } = useMember();
  return has('people') ? (
    <People key={account ?? ''} isInstallation={isInstallation} account={account} />
  ) : (
    <Page title={t('page.people')} question={t('people.question')}>
      <ScopeChoice path="people" />
      <Denied permission="people" />
    </Page>
  );
}

interface PeopleProps {
  isInstallation: boolean;
  account: string | undefined;
}

function People({ isInstallation, account }: PeopleProps) {
  const { t, time } = useTexts();
  const data = useConsoleData<{ people: PresentedPerson[] }>('/console/people', account);
  useRefresh(data.reload);
  const [link, setLink] = useState<NewLink | null>(null);
  const { outcome, run } = useAction();
  const send = async (method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown) => {
    const result = await request<Partial<Invited>>(`/console/people${path}`, { method, body, account });
    const { person, link: address, expiresAt } = result;
    const hasLink = person !== undefined && address !== undefined && expiresAt !== undefined;
    setLink(hasLink ? { email: person.email, link: address, expiresAt } : null);
    data.reload();
    toast(t(path === '' && !hasLink ? 'people.added' : 'people.done'));
    return '';
  };
  const change: Change = (...request) => run(() => send(...request));
  const inviting = t(isInstallation ? 'people.inviteOperator' : 'people.invite');
  return (
    <Page
      title={t('page.people')}
      question={t('people.question')}
      actions={
        <CreationDrawer title={inviting}>
          {(close) => (
            <Invitation
              isInstallation={isInstallation}
              invite={async (body) => {
                await send('POST', '', body);
                close();
              }}
            />
          )}
        </CreationDrawer>
      }
    >
      <ScopeChoice path="people" />
      <Outcome of={outcome} />
      {link !== null && (
        <SecretDialog
          title={t('people.link', { email: link.email })}
          hint={t('people.link.hint', { time: time(link.expiresAt) })}
          secrets={[{ value: link.link, copyLabel: t('people.link.copy') }]}
          onStored={() => setLink(null)}
        />
      )}
      <Loaded data={data}>
        {({ people }) =>
          people.length === 0 ? (
            <Empty title={t('people.empty')} icon="users">
              <p>{t('people.empty.hint')}</p>
            </Empty>
          ) : (
            <Table
              label={t('page.people')}
              isList
              heads={[
                t('people.person'),
                t('people.role'),
                t('people.credentials'),
                { text: t('people.lastSignIn'), end: true },
                { text: t('people.actions'), unseen: true },
              ]}
            >
              {people.map((person) => (
                <PersonRow key={person.id} person={person} isInstallation={isInstallation} change={change} />
              ))}
            </Table>
          )
        }
      </Loaded>
    </Page>
  );
}

type Change = (method: 'POST' | 'PATCH' | 'DELETE', path: string, body?: unknown) => Promise<void>;

interface PersonRowProps {
  person: PresentedPerson;
  isInstallation: boolean;
  change: Change;
}

function PersonRow({ person, isInstallation, change }: PersonRowProps) {
  const { t } = useTexts();
  const member = useMember();
  const isSelf = person.id === member.person.id;
  const path = `/${encodeURIComponent(person.id)}`;
  const isActive = person.status === 'active';
  return (
    <tr>
      <th scope="row">
        {person.email} {isSelf && <span class="small">({t('people.you')})</span>}
        {person.name !== '' && <p class="small">{person.name}</p>}
        {!isActive && <Chip kind="bad">{t('people.disabled')}</Chip>}
      </th>
      <td class="aside">
        {isInstallation || person.role === undefined ? (
          t(person.operator ? 'role.operator' : 'people.member')
        ) : (
          <RoleForm
            // A role that was changed elsewhere replaces the choice.
            key={person.role}
            email={person.email}
            role={person.role}
            save={(role) => change('PATCH', path, { role })}
          />
        )}
      </td>
      <td class="second">{credentialsOf(person, t)}</td>
      <td class="when">
        {person.signedInAt === null ? t('domains.never') : <Time at={person.signedInAt} />}
      </td>
      <td class="menu">
        {isInstallation && !isActive && (
          <button
            class="button small"
            type="button"
            onClick={() => void change('PATCH', path, { status: 'active' })}
          >
            {t('people.enable')}
          </button>
        )}
        {!isSelf && (
          <RowActions
            label={person.email}
            actions={[
              {
                label: t('people.recover'),
                question: t('people.recover.confirm', { email: person.email }),
                action: () => change('POST', `${path}/recovery`),
              },
              ...(isInstallation && isActive
                ? [
                    {
                      isDanger: true,
                      label: t('people.disable'),
                      question: t('people.disable.confirm', { email: person.email }),
                      action: () => change('PATCH', path, { status: 'disabled' }),
                    },
                  ]
                : []),
              {
                isDanger: true,
                label: t('people.remove'),
                question: t(isInstallation ? 'people.delete.confirm' : 'people.remove.confirm', {
                  email: person.email,
                }),
                action: () => change('DELETE', path),
              },
            ]}
          />
        )}
      </td>
    </tr>
  );
}

function credentialsOf(person: PresentedPerson, t: ReturnType<typeof useTexts>['t']): string {
  const parts = [
    ...(person.passkeys > 0 ? [t('people.passkeys', { count: person.passkeys })] : []),
    ...(person.hasPassword && person.hasTotp ? [t('people.password')] : []),
  ];
  return parts.length === 0 ? t('people.linkOnly') : parts.join(', ');
}

interface RoleFormProps {
  email: string;
  role: MemberRole;
  save: (role: string) => Promise<void>;
}

/** The role is saved with a button, because a choice by keyboard selects the roles in between. */
function RoleForm({ email, role, save }: RoleFormProps) {
  const { t } = useTexts();
  const [chosen, setChosen] = useState<string>(role);
  return (
    <form
      class="actions"
      onSubmit={(event) => {
        event.preventDefault();
        void save(chosen);
      }}
    >
      <select
        class="select"
        aria-label={t('people.roleOf', { email })}
        value={chosen}
        onChange={(event) => setChosen(event.currentTarget.value)}
      >
        {ROLES.map((name) => (
          <option value={name} key={name}>
            {t(`role.${name}`)}
          </option>
        ))}
      </select>
      {chosen !== role && (
        <button class="button" type="submit">
          {t('people.saveRole')}
        </button>
      )}
    </form>
  );
}

interface InvitationProps {
  isInstallation: boolean;
  invite: (person: object) => Promise<void>;
}

function Invitation({ isInstallation, invite }: InvitationProps) {
  const { t } = useTexts();
  const { outcome, run } = useAction();
  const [role, setRole] = useState<MemberRole>('viewer');
  return (
    <>
      {isInstallation && <p class="small">{t('people.inviteOperator.hint')}</p>}
      <form
        onSubmit={(event) => {
          event.preventDefault();
          const fields = new FormData(event.currentTarget);
          const input = { email: fields.get('email'), name: fields.get('name') };
          void run(async () => {
            await invite(isInstallation ? input : { ...input, role });
            return '';
          });
        }}
      >
        <label class="field">
          {t('signIn.email')}
          <input class="input" name="email" type="email" required maxLength={320} autocomplete="off" />
        </label>
        <label class="field">
          {t('people.name')}
          <input class="input" name="name" maxLength={100} autocomplete="off" />
        </label>
        {!isInstallation && (
          <label class="field">
            {t('people.role')}
            <select
              class="select"
              value={role}
              aria-describedby="role-hint"
              onChange={({ currentTarget: { value } }) =>
                setRole(ROLES.find((name) => name === value) ?? 'viewer')
              }
            >
              {ROLES.map((name) => (
                <option value={name} key={name}>
                  {t(`role.${name}`)}
                </option>
              ))}
            </select>
            <span id="role-hint" class="small">
              {t(`role.${role}.hint`)}
            </span>
          </label>
        )}
        <div class="actions">
          <Button
            type="submit"
            kind="primary"
            label={t('people.inviteNow')}
            isBusy={outcome?.running === true}
          />
        </div>
      </form>
      <Outcome of={outcome} />
    </>
  );
}
