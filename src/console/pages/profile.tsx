import { useState } from 'preact/hooks';
import type { TotpSetup } from '../../http/console/credential-routes.ts';
import type { PresentedPerson } from '../../http/console/session-routes.ts';
import { request } from '../api.ts';
import { useConsoleData, useRefresh } from '../data.ts';
import { Time } from '../parts/time.tsx';
import { beginTotp, confirmTotp, TotpForm } from '../parts/totp-form.tsx';
import { Confirmed, Empty, Loaded, Outcome, Page, Table, useAction } from '../parts.tsx';
import { createPasskey } from '../passkeys.ts';
import type { ConsoleSession } from '../session.ts';
import { useTexts } from '../texts.ts';

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
    <>
      <p>{person.email}</p>
      <form
        class="search"
        onSubmit={(event) => {
          event.preventDefault();
          const name = new FormData(event.currentTarget).get('name');
          void run(async () => {
            await request('/console/me', { method: 'PATCH', body: { name } });
            reload();
            return t('me.saved');
          });
        }}
      >
        <label class="field">
          {t('people.name')}
          <input class="input" name="name" maxLength={100} autocomplete="name" defaultValue={person.name} />
        </label>
        <div class="actions">
          <button class="button" type="submit">
            {t('me.save')}
          </button>
        </div>
      </form>
      <Outcome of={outcome} />
    </>
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
    <>
      <h2>{t('me.passkeys')}</h2>
      <Loaded data={data}>
        {({ passkeys }) =>
          passkeys.length === 0 ? (
            <Empty title={t('me.passkeys.empty')}>
              <p>{t('me.passkeys.hint')}</p>
            </Empty>
          ) : (
            <Table
              label={t('me.passkeys')}
              heads={[t('people.name'), t('messages.created'), t('me.used'), t('people.actions')]}
            >
              {passkeys.map(({ id, name, createdAt, usedAt }) => (
                <tr key={id}>
                  <th scope="row">{name}</th>
                  <td>
                    <Time at={createdAt} />
                  </td>
                  <td>{usedAt === null ? t('domains.never') : <Time at={usedAt} />}</td>
                  <td>
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
      <Outcome of={outcome} />
      {session.value !== null && !session.value.methods.passkey && <p>{t('me.passkeys.unavailable')}</p>}
      {session.value?.methods.passkey === true && (
        <form
          class="search"
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
            <button type="submit" class="button primary" disabled={outcome?.running}>
              {t('me.passkey.add')}
            </button>
          </div>
        </form>
      )}
    </>
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
    <>
      <h2>{t('me.password')}</h2>
      <p>
        {t(
          person.hasPassword
            ? person.hasTotp
              ? 'me.password.complete'
              : 'me.password.incomplete'
            : 'me.password.none',
        )}
      </p>
      <form
        class="search"
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
      {person.hasPassword && <Totp person={person} reload={reload} />}
    </>
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
    <>
      <h2>{t('me.sessions')}</h2>
      <Outcome of={outcome} />
      <Loaded data={data}>
        {({ sessions }) => (
          <>
            <Sessions sessions={sessions} revoke={revoke} />
            {sessions.length > 1 && (
              <Confirmed
                label={t('me.sessions.endOthers')}
                question={t('me.sessions.endOthers.confirm')}
                action={() => revoke('')}
              />
            )}
          </>
        )}
      </Loaded>
    </>
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
      heads={[t('me.session.browser'), t('audit.address'), t('me.session.seen'), t('people.actions')]}
    >
      {sessions.map(({ id, method, userAgent, address, createdAt, seenAt, current }) => (
        <tr key={id}>
          <td>
            {userAgent}
            <p class="small">
              {t('me.session.since', { time: time(createdAt), method: named('me.method', method) })}
            </p>
          </td>
          <td>{address}</td>
          <td>
            <Time at={seenAt} />
          </td>
          <td>
            {current ? (
              t('me.session.current')
            ) : (
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
