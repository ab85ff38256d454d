import { operate } from '../../api.ts';
import type { BodyOf } from '../../operations.ts';
import { Button } from '../../parts/button.tsx';
import { fieldText, filledTexts } from '../../parts/field-text.ts';
import { SenderField } from '../../parts/sender-field.tsx';
import { Card, Confirmed, Copy, Notice, Outcome, useAction } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import type { Group } from './group-list.tsx';
import { GROUP } from './settings.tsx';

interface SignUpProps {
  group: Group;
  page: string;
  onChange: () => void;
}

/** The sign-up form of a group: its confirmation mail, and the code for other sites with a preview. */
export function SignUp({ group, page, onChange }: SignUpProps) {
  const { t } = useTexts();
  const { accountId, may } = useMember();
  const { outcome, run } = useAction();
  const { signUp, signUpUrl } = group;
  const mayChange = may('patchSubscriptionGroup');
  const save = (changed: NonNullable<BodyOf<typeof GROUP, 'patch'>['signUp']> | null) =>
    run(async () => {
      await operate('patch', GROUP, {
        account: accountId,
        parameters: { subscriptionGroupId: group.subscriptionGroupId },
        body: { signUp: changed },
      });
      onChange();
      return t('me.saved');
    });
  const submit = (fields: FormData) =>
    save({
      from: fieldText(fields, 'from'),
      subject: null,
      intro: null,
      ...filledTexts(fields, 'subject', 'intro'),
    });
  return (
    <div class={signUp === null ? undefined : 'columns'}>
      <Card
        title={t('groups.signUp.mail')}
        action={
          signUp !== null &&
          mayChange && (
            <Confirmed
              isDanger
              label={t('groups.signUp.turnOff')}
              question={t('groups.signUp.turnOff.confirm')}
              action={() => save(null)}
            />
          )
        }
      >
        <form
          class="card-body"
          aria-label={t('groups.signUp.mail')}
          onSubmit={(event) => {
            event.preventDefault();
            void submit(new FormData(event.currentTarget));
          }}
        >
          <p>{t('groups.signUp.about')}</p>
          {signUp === null && <Notice title={t('groups.signUp.off')} />}
          <SenderField
            value={signUp?.from ?? ''}
            hint={t('groups.signUp.from.hint')}
            isReadOnly={!mayChange}
          />
          <label class="field">
            {t('messages.subject')}
            <input
              class="input"
              name="subject"
              maxLength={200}
              placeholder={`Confirm your subscription to ${group.name}`}
              defaultValue={signUp?.subject ?? ''}
              readOnly={!mayChange}
            />
          </label>
          <label class="field">
            {t('groups.signUp.intro')}
            <input
              class="input"
              name="intro"
              maxLength={1000}
              placeholder={`Please confirm that you want to subscribe to ${group.name}:`}
              defaultValue={signUp?.intro ?? ''}
              readOnly={!mayChange}
            />
          </label>
          {mayChange && (
            <div class="actions">
              <Button
                type="submit"
                kind="primary"
                label={t(signUp === null ? 'groups.signUp.turnOn' : 'me.save')}
                isBusy={outcome?.running === true}
              />
            </div>
          )}
          <Outcome of={outcome} />
        </form>
      </Card>
      {signUpUrl !== undefined && <Embedding group={group} page={page} url={signUpUrl} />}
    </div>
  );
}

/** The code of the form for other sites; `names` of the address: it asks for names. */
function Embedding({ group, page, url }: { group: Group; page: string; url: string }) {
  const { t } = useTexts();
  const { location, href, go } = useNavigation();
  const withNames = location.query['names'] !== undefined;
  const fields = [
    { name: 'email', label: t('signIn.email'), type: 'email', autocomplete: 'email', required: true },
    ...(withNames
      ? [
          { name: 'firstName', label: t('groups.signUp.firstName'), autocomplete: 'given-name' },
          { name: 'lastName', label: t('groups.signUp.lastName'), autocomplete: 'family-name' },
        ]
      : []),
  ].map((field) => ({ type: 'text', required: false, ...field }));
  const code = [
    `<form action="${escaped(url)}" method="post" accept-charset="utf-8">`,
    ...fields.map(
      ({ name, label, type, autocomplete, required }) =>
        `  <label class="field">${escaped(label)} <input class="input" type="${type}" name="${name}" autocomplete="${autocomplete}"${required ? ' required' : ''}></label>`,
    ),
    // People do not see it; programs fill it in.
    '  <p hidden><input class="input" name="website" tabindex="-1" autocomplete="off"></p>',
    `  <button class="button">${escaped(t('groups.signUp.button'))}</button>`,
    '</form>',
  ].join('\n');
  return (
    <div>
      <Card
        title={t('groups.signUp.link')}
        action={
          <a class="button small" href={url} target="_blank" rel="noreferrer">
            {t('groups.signUp.open')}
          </a>
        }
      >
        <div class="card-body">
          <span class="value">{url}</span> <Copy text={url} label={t('groups.signUp.copyLink')} />
        </div>
      </Card>
      <Card
        title={t('groups.signUp.embed')}
        action={<Copy text={code} label={t('groups.signUp.copyCode')} />}
      >
        <div class="card-body">
          <p class="small">{t('groups.signUp.embed.hint')}</p>
          <label class="check">
            <input
              class="tick"
              type="checkbox"
              checked={withNames}
              onChange={({ currentTarget: { checked } }) =>
                go(href(page, { tab: 'form', names: checked ? '1' : undefined }), { replace: true })
              }
            />{' '}
            {t('groups.signUp.names')}
          </label>
          <pre tabIndex={0}>{code}</pre>
        </div>
      </Card>
      <Card title={t('preview.title')}>
        <form
          class="card-body"
          aria-label={t('groups.signUp.preview', { name: group.name })}
          onSubmit={(event) => event.preventDefault()}
        >
          {fields.map(({ name, label, type }) => (
            <label class="field" key={name}>
              {label} <input class="input" type={type} autocomplete="off" />
            </label>
          ))}
          <button class="button" type="submit">
            {t('groups.signUp.button')}
          </button>
        </form>
      </Card>
    </div>
  );
}

function escaped(text: string): string {
  return text.replace(/[&<>"]/g, (character) => `&#${character.charCodeAt(0)};`);
}
