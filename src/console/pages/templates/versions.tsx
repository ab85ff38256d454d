import type * as z from 'zod';
import type { templateVersionSchema } from '../../../http/api/template-versions.ts';
import { callApi } from '../../api.ts';
import { useData } from '../../data.ts';
import { Time } from '../../parts/time.tsx';
import { Loaded, Outcome, Table, useAction } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';

type Version = z.output<typeof templateVersionSchema>;

/** The content of a version, as the editor takes it. */
export interface VersionContent extends Version {
  type?: 'transactional' | 'marketing';
  html: string;
  text?: string;
}

interface VersionsProps {
  /** Path of the template in the API. */
  path: string;
  /** Null: the user may not change the template. */
  onRestore: ((content: VersionContent) => void) | null;
}

/** Contents of the template before its last changes. Restoring one puts it into the editor: it is saved there. */
export function Versions({
  change,
  ...list
}: VersionsProps & { /** Changes when the template was saved. */ change: string }) {
  const { t } = useTexts();
  return (
    <details>
      <summary>{t('templates.versions')}</summary>
      <VersionList key={change} {...list} />
    </details>
  );
}

function VersionList({ path, onRestore }: VersionsProps) {
  const { t } = useTexts();
  const { accountId } = useMember();
  const data = useData<{ versions: Version[] }>(`${path}/versions`);
  const { outcome, run } = useAction();
  const restore = (version: number) =>
    run(async () => {
      onRestore?.(await callApi<VersionContent>(`${path}/versions/${version}`, { account: accountId }));
      return t('templates.versions.restored', { version });
    });
  return (
    <>
      <Loaded data={data}>
        {({ versions }) =>
          versions.length === 0 ? (
            <p>{t('templates.versions.none')}</p>
          ) : (
            <Table
              label={t('templates.versions')}
              heads={[
                t('templates.versions.version'),
                t('messages.subject'),
                t('templates.versions.saved'),
                ...(onRestore === null ? [] : [t('people.actions')]),
              ]}
            >
              {versions.map(({ version, subject, savedAt }) => (
                <tr key={version}>
                  <th scope="row">{version}</th>
                  <td>{subject}</td>
                  <td>
                    <Time at={savedAt} />
                  </td>
                  {onRestore !== null && (
                    <td>
                      <button
                        class="button"
                        type="button"
                        aria-label={t('templates.versions.restoreOf', { version })}
                        onClick={() => void restore(version)}
                      >
                        {t('templates.versions.restore')}
                      </button>
                    </td>
                  )}
                </tr>
              ))}
            </Table>
          )
        }
      </Loaded>
      <Outcome of={outcome} />
    </>
  );
}
