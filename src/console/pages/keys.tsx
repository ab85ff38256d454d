import documentation from '../../../docs/clients.md?raw';
import { Copy, Page } from '../parts.tsx';
import { useNavigation } from '../routing.ts';
import { useMember } from '../session.ts';
import { useTexts } from '../texts.ts';

const SCOPES = ['transactional', 'marketing', 'setup'] as const;

interface Program {
  language: string;
  code: string;
}

/** The programs of the documentation, which its tests run. */
const PROGRAMS = programsOf(documentation);

/** The command that creates a key, and programs that send a message. */
export function KeysPage() {
  const { t } = useTexts();
  const { location, href, go } = useNavigation();
  const { accountId } = useMember();
  const scope = SCOPES.find((name) => name === location.query['scope']) ?? 'transactional';
  const chosen = PROGRAMS.find(({ language }) => language === location.query['language']) ?? PROGRAMS[0];
  const change = (query: { scope?: string; language?: string }) =>
    go(href('keys', { scope, language: chosen?.language, ...query }), { replace: true });
  const command = `postrider key create --account ${accountId} --name NAME --scope ${scope}`;
  return (
    <Page title={t('page.keys')} question={t('keys.question')}>
      <h2>{t('keys.create')}</h2>
      <p>{t('keys.create.hint')}</p>
      <form class="search" onSubmit={(event) => event.preventDefault()}>
        <label>
          {t('keys.scope')}
          <select
            value={scope}
            aria-describedby="scope-hint"
            onChange={(event) => change({ scope: event.currentTarget.value })}
          >
            {SCOPES.map((name) => (
              <option value={name} key={name}>
                {t(`keys.scope.${name}`)}
              </option>
            ))}
          </select>
          <span id="scope-hint" class="small">
            {t(`keys.scope.${scope}.hint`)}
          </span>
        </label>
      </form>
      <pre tabIndex={0}>{command}</pre>
      <Copy text={command} label={t('keys.copyCommand')} />
      <p class="small">{t('keys.restrict')}</p>
      <h2>{t('keys.quickStart')}</h2>
      <dl>
        <div>
          <dt>X-Id</dt>
          <dd>
            <code>{accountId}</code> <Copy text={accountId} label={t('keys.copyAccount')} />
          </dd>
        </div>
        <div>
          <dt>X-Api-Key</dt>
          <dd>{t('keys.secret')}</dd>
        </div>
      </dl>
      {chosen !== undefined && (
        <>
          <form class="search" onSubmit={(event) => event.preventDefault()}>
            <label>
              {t('keys.language')}
              <select
                value={chosen.language}
                onChange={(event) => change({ language: event.currentTarget.value })}
              >
                {PROGRAMS.map(({ language }) => (
                  <option value={language} key={language}>
                    {language}
                  </option>
                ))}
              </select>
            </label>
          </form>
          <pre tabIndex={0}>{chosen.code}</pre>
          <Copy text={chosen.code} label={t('keys.copyProgram')} />
        </>
      )}
    </Page>
  );
}

/** The first block of code of each language; the section about SMTP sends with other programs. */
function programsOf(markdown: string): Program[] {
  return markdown
    .split(/^## /m)
    .slice(1)
    .flatMap((section) => {
      const language = section.slice(0, section.indexOf('\n')).trim();
      const code = /^```\w+\n(.*?)^```$/ms.exec(section)?.[1];
      return code === undefined || !code.includes('/transactional/send') ? [] : [{ language, code }];
    });
}
