import { operate } from '../../api.ts';
import { useOperation } from '../../data.ts';
import type { DataOf } from '../../operations.ts';
import { Icon } from '../../parts/icon/icon.tsx';
import { Time } from '../../parts/time.tsx';
import { Loaded, Outcome, Table, useAction } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';

const VERSIONS = '/web-setup/templates/{templateId}/versions';
const VERSION = `${VERSIONS}/{version}` as const;

/** The content of a version, as the editor takes it. */
export type VersionContent = DataOf<typeof VERSION>;

interface VersionsProps {
  templateId: string;
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
    <details class="card folded">
      <summary class="card-head">
        {t('templates.versions')}
        <Icon name="chevron-down" />
      </summary>
      <VersionList key={change} {...list} />
    </details>
  );
}

function VersionList({ templateId, onRestore }: VersionsProps) {
  const { t } = useTexts();
  const { accountId } = useMember();
  const data = useOperation(VERSIONS, { templateId });
  const { outcome, run } = useAction();
  const restore = (version: number) =>
    run(async () => {
      const parameters = { templateId, version };
      onRestore?.(await operate('get', VERSION, { account: accountId, parameters }));
      return t('templates.versions.restored', { version });
    });
  return (
    <>
      <Loaded data={data}>
        {({ versions }) =>
          versions.length === 0 ? (
            <p class="all-well">{t('templates.versions.none')}</p>
          ) : (
            <Table
              label={t('templates.versions')}
              isList
              heads={[
                t('templates.versions.version'),
                t('messages.subject'),
                { text: t('templates.versions.saved'), end: true },
                ...(onRestore === null ? [] : [{ text: t('people.actions'), unseen: true } as const]),
              ]}
            >
              {versions.map(({ version, subject, savedAt }) => (
                <tr key={version}>
                  <th scope="row">{version}</th>
                  <td class="second">{subject}</td>
                  <td class="when">
                    <Time at={savedAt} />
                  </td>
                  {onRestore !== null && (
                    <td class="aside">
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
