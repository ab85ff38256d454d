import { useState } from 'preact/hooks';
import type { TotpSetup } from '../../../http/console/credential-routes.ts';
import type { PresentedPerson } from '../../../http/console/session-routes.ts';
import { request } from '../../api.ts';
import { useConsoleData, useRefresh } from '../../data.ts';
import { Button } from '../../parts/button.tsx';
import { FactList } from '../../parts/fact-list.tsx';
import { Time } from '../../parts/time.tsx';
import { toast } from '../../parts/toast.tsx';
import { beginTotp, confirmTotp, TotpForm } from '../../parts/totp-form.tsx';
import { Card, Chip, Confirmed, Empty, Loaded, Outcome, Page, Table, useAction } from '../../parts.tsx';
import { createPasskey } from '../../passkeys.ts';
import type { ConsoleSession } from '../../session.ts';
import { setShortcuts } from '../../shell/shortcuts.tsx';
import { useTexts } from '../../texts.ts';
import './profile.css';

interface Passkey {
  id: string;
  name: string;
  createdAt: string;
  usedAt: string | null;
}

interface ListedSession {
  id: string;
  method: string;
  userAgent: string;
  address: string;
  createdAt: string;
  seenAt: string;
  current: boolean;
}

/** How the person signs in, and where they are signed in. */
export function ProfilePage() {
  const { t } = useTexts();
  const me = useConsoleData<PresentedPerson>('/console/me');
  useRefresh(me.reload);
  return (
    <Page title={t('page.me')} question={t('me.question')}>
      <Loaded data={me}>
        {(person) => (
          <>
            <Name person={person} reload={me.reload} />
            <Preferences person={person} reload={me.reload} />
            <Passkeys reload={me.reload} />
            <Password person={person} reload={me.reload} />
          </>
        )}
      </Loaded>
      <SessionList />
    </Page>
  );
}

interface PersonProps {
  person: PresentedPerson;
  reload: () => void;
}

function Name({ person, reload }: PersonProps) {
  const { t } = useTexts();
  const { outcome, run } = useAction();
  return (
    <Card title={t('me.person')}>
      <form
        class="card-body"
        onSubmit={(event) => {
          event.preventDefault();
          const name = new FormData(event.currentTarget).get('name');
          void run(async () => {
            await request('/console/me', { method: 'PATCH', body: { name } });
            reload();
            toast(t('me.saved'));
            return '';
          });
        }}
      >
        <FactList facts={[[t('suppressions.email'), person.email]]} />
        <label class="field">
          {t('people.name')}
          <input class="input" name="name" maxLength={100} autocomplete="name" defaultValue={person.name} />
        </label>
        <div class="actions">
          <button class="button" type="submit">
            {t('me.save')}
          </button>
        </div>
        <Outcome of={outcome} />
      </form>
    </Card>
  );
}

/** What is stored as soon as it is chosen. */
function Preferences({ person, reload }: PersonProps) {
  const { t } = useTexts();
  const { outcome, run } = useAction();
  const change = (patch: { shortcuts?: boolean; failureMail?: boolean }) =>
    run(async () => {
      await request('/console/me', { method: 'PATCH', body: patch });
      if (patch.shortcuts !== undefined) setShortcuts(patch.shortcuts);
      reload();
      toast(t('me.saved'));
      return '';
    });
  return (
    <Card title={t('me.preferences')}>
      <div class="card-body">
        <label class="check">
          <input
            class="tick"
            type="checkbox"
            checked={person.shortcuts}
            aria-describedby="shortcuts-hint"
            onChange={({ currentTarget: { checked } }) => void change({ shortcuts: checked })}
          />
          {t('me.shortcuts')}
        </label>
        <p id="shortcuts-hint" class="small">
          {t('me.shortcuts.hint')}
        </p>
        <label class="check">
          <input
            class="tick"
            type="checkbox"
            checked={person.failureMail}
            aria-describedby="failure-mail-hint"
            onChange={({ currentTarget: { checked } }) => void change({ failureMail: checked })}
          />
          {t('me.failureMail')}
        </label>
        <p id="failure-mail-hint" class="small">
          {t('me.failureMail.hint')}
        </p>
        <Outcome of={outcome} />
      </div>
    </Card>
  );
}

function Passkeys({ reload }: { reload: () => void }) {
  const { t } = useTexts();
  const session = useConsoleData<ConsoleSession>('/console/session');
  const data = useConsoleData<{ passkeys: Passkey[] }>('/console/me/passkeys');
  useRefresh(data.reload);
  const { outcome, run } = useAction();
  const changed = (text: string) => {
    data.reload();
    reload();
    return text;
  };
  const add = (form: HTMLFormElement) => {
    const name = new FormData(form).get('name');
    return run(async () => {
      await createPasskey(typeof name === 'string' ? name : '');
      form.reset();
      return changed(t('me.passkey.added'));
    });
  };
  return (
    <Card title={t('me.passkeys')}>
      <Loaded data={data}>
        {({ passkeys }) =>
          passkeys.length === 0 ? (
            <Empty title={t('me.passkeys.empty')} icon="key-round">
              <p>{t('me.passkeys.hint')}</p>
            </Empty>
          ) : (
            <Table
              label={t('me.passkeys')}
              isList
              heads={[
                t('people.name'),
                { text: t('messages.created'), end: true },
                { text: t('me.used'), end: true },
                { text: t('people.actions'), unseen: true },
              ]}
            >
              {passkeys.map(({ id, name, createdAt, usedAt }) => (
                <tr key={id}>
                  <th scope="row">{name}</th>
                  <td>
                    <Time at={createdAt} />
                  </td>
                  <td class="second">{usedAt === null ? t('domains.never') : <Time at={usedAt} />}</td>
                  <td class="menu">
                    <Confirmed
                      isDanger
                      label={t('me.passkey.remove')}
                      question={t('me.passkey.remove.confirm', { name })}
                      action={() =>
                        run(async () => {
                          await request(`/console/me/passkeys/${encodeURIComponent(id)}`, {
                            method: 'DELETE',
                          });
                          return changed(t('me.passkey.removed'));
                        })
                      }
                    />
                  </td>
                </tr>
              ))}
            </Table>
          )
        }
      </Loaded>
      {session.value !== null && !session.value.methods.passkey && (
        <p class="card-body">{t('me.passkeys.unavailable')}</p>
      )}
      {session.value?.methods.passkey === true && (
        <form
          class="card-body row-form"
          onSubmit={(event) => {
            event.preventDefault();
            void add(event.currentTarget);
          }}
        >
          <label class="field">
            {t('me.passkey.name')}
            <input
              class="input"
              name="name"
              required
              maxLength={100}
              autocomplete="off"
              aria-describedby="passkey-hint"
            />
            <span id="passkey-hint" class="small">
              {t('me.passkey.name.hint')}
            </span>
          </label>
          <div class="actions">
            <Button
              type="submit"
              kind="primary"
              label={t('me.passkey.add')}
              isBusy={outcome?.running === true}
            />
          </div>
        </form>
      )}
      <Outcome of={outcome} />
    </Card>
  );
}

function Password({ person, reload }: PersonProps) {
  const { t } = useTexts();
  const { outcome, run } = useAction();
  const set = (form: HTMLFormElement) => {
    const password = new FormData(form).get('password');
    return run(async () => {
      await request('/console/me/password', { method: 'PUT', body: { password } });
      form.reset();
      reload();
      return t('me.password.saved');
    });
  };
  return (
    <Card title={t('me.password')}>
      <p class="card-text">
        {t(
          person.hasPassword
            ? person.hasTotp
              ? 'me.password.complete'
              : 'me.password.incomplete'
            : 'me.password.none',
        )}
      </p>
      <form
        class="card-body row-form"
        onSubmit={(event) => {
          event.preventDefault();
          void set(event.currentTarget);
        }}
      >
        <input type="hidden" autocomplete="username" value={person.email} />
        <label class="field">
          {t('me.password.new')}
          <input class="input" name="password" type="password" required autocomplete="new-password" />
        </label>
        <div class="actions">
          <button class="button" type="submit">
            {t(person.hasPassword ? 'me.password.change' : 'me.password.set')}
          </button>
          {person.hasPassword && (
            <Confirmed
              isDanger
              label={t('me.password.remove')}
              question={t('me.password.remove.confirm')}
              action={() =>
                run(async () => {
                  await request('/console/me/password', { method: 'DELETE' });
                  reload();
                  return t('me.password.removed');
                })
              }
            />
          )}
        </div>
      </form>
      <Outcome of={outcome} />
      {person.hasPassword && (
        <div class="card-body">
          <Totp person={person} reload={reload} />
        </div>
      )}
    </Card>
  );
}

function Totp({ person, reload }: PersonProps) {
  const { t } = useTexts();
  const [setup, setSetup] = useState<TotpSetup | null>(null);
  const { outcome, run } = useAction();
  const begin = () =>
    run(async () => {
      setSetup(await beginTotp());
      return t('me.totp.enter');
    });
  return (
    <>
      <h3>{t('me.totp')}</h3>
      <button class="button" type="button" onClick={() => void begin()}>
        {t(person.hasTotp ? 'me.totp.replace' : 'me.totp.begin')}
      </button>
      <Outcome of={outcome} />
      {setup !== null && (
        <TotpForm
          setup={setup}
          onConfirm={(code) => {
            void run(async () => {
              await confirmTotp(setup, code);
              setSetup(null);
              reload();
              return t('me.totp.done');
            });
          }}
        />
      )}
    </>
  );
}

function SessionList() {
  const { t } = useTexts();
  const data = useConsoleData<{ sessions: ListedSession[] }>('/console/me/sessions');
  useRefresh(data.reload);
  const { outcome, run } = useAction();
  const revoke = (path: string) =>
    run(async () => {
      await request(`/console/me/sessions${path}`, { method: 'DELETE' });
      data.reload();
      return t('me.session.ended');
    });
  return (
    <Card
      title={t('me.sessions')}
      action={
        (data.value?.sessions.length ?? 0) > 1 && (
          <Confirmed
            label={t('me.sessions.endOthers')}
            question={t('me.sessions.endOthers.confirm')}
            action={() => revoke('')}
          />
        )
      }
    >
      <Outcome of={outcome} />
      <Loaded data={data}>{({ sessions }) => <Sessions sessions={sessions} revoke={revoke} />}</Loaded>
    </Card>
  );
}

interface SessionsProps {
  sessions: ListedSession[];
  revoke: (path: string) => Promise<void>;
}

function Sessions({ sessions, revoke }: SessionsProps) {
  const { t, time, named } = useTexts();
  return (
    <Table
      label={t('me.sessions')}
      isList
      heads={[
        t('me.session.browser'),
        t('me.session.since.head'),
        t('audit.address'),
        { text: t('me.session.seen'), end: true },
        { text: t('people.actions'), unseen: true },
      ]}
    >
      {sessions.map(({ id, method, userAgent, address, createdAt, seenAt, current }) => (
        <tr key={id}>
          <th scope="row" title={userAgent}>
            {browserName(userAgent)} {current && <Chip kind="ok">{t('me.session.current')}</Chip>}
          </th>
          <td class="second" title={time(createdAt)}>
            {named('me.method', method)}
          </td>
          <td>{address}</td>
          <td class="when">
            <Time at={seenAt} />
          </td>
          <td class="menu">
            {!current && (
              <button class="button" type="button" onClick={() => void revoke(`/${encodeURIComponent(id)}`)}>
                {t('me.session.end')}
              </button>
            )}
          </td>
        </tr>
      ))}
    </Table>
  );
}

/** Browser and system of a `User-Agent`, as far as they can be recognized. */
function browserName(userAgent: string): string {
  const found = (names: readonly string[]) => names.find((name) => userAgent.includes(name));
  // In this order: the later ones name the earlier ones, too.
  const browser = found(['Firefox', 'Edg', 'OPR', 'Chrome', 'Safari']);
  const system = found(['Android', 'iPhone', 'iPad', 'Windows', 'Mac OS X', 'CrOS', 'Linux']);
  if (browser === undefined) return userAgent || '–';
  const name = BROWSERS[browser] ?? browser;
  return system === undefined ? name : `${name} · ${SYSTEMS[system] ?? system}`;
}

const BROWSERS: Readonly<Record<string, string>> = { Edg: 'Edge', OPR: 'Opera' };
const SYSTEMS: Readonly<Record<string, string>> = { 'Mac OS X': 'macOS', CrOS: 'ChromeOS' };
