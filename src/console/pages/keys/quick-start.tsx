import documentation from '../../../../docs/reference/programs.md?raw';
import { Card, Copy } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';

interface Program {
  language: string;
  code: string;
}

/** The programs of the documentation, which its tests run. */
const PROGRAMS = programsOf(documentation);

/** What a request needs, and a program that sends a message, in the language of the address. */
export function QuickStart() {
  const { t } = useTexts();
  const { location, href, go } = useNavigation();
  const { accountId } = useMember();
  const { language: wanted, lastKey } = location.query;
  const chosen = PROGRAMS.find(({ language }) => language === wanted) ?? PROGRAMS[0];
  return (
    <Card
      title={t('keys.quickStart')}
      action={
        chosen !== undefined && (
          <>
            <select
              class="select"
              aria-label={t('keys.language')}
              value={chosen.language}
              onChange={({ currentTarget: { value: language } }) =>
                go(href('keys', { lastKey, language }), { replace: true })
              }
            >
              {PROGRAMS.map(({ language }) => (
                <option value={language} key={language}>
                  {language}
                </option>
              ))}
            </select>
            <Copy text={chosen.code} label={t('keys.copyProgram')} />
          </>
        )
      }
    >
      <div class="card-body">
        <dl class="facts">
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
        {chosen !== undefined && <pre tabIndex={0}>{chosen.code}</pre>}
      </div>
    </Card>
  );
}

/** The first block of code of each language. */
function programsOf(markdown: string): Program[] {
  return markdown
    .split(/^## /m)
    .slice(1)
    .flatMap((section) => {
      const language = section.slice(0, section.indexOf('\n')).trim();
      // Not linear: the text is a part of docs/reference/programs.md.
      const code = /^```\w+\n(.*?)^```$/ms.exec(section)?.[1];
      return code === undefined || !code.includes('/transactional/send') ? [] : [{ language, code }];
    });
}
