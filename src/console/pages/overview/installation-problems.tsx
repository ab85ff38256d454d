import { useCallback } from 'preact/hooks';
import type * as z from 'zod';
import type { installationSchema } from '../../../http/api/installation.ts';
import type { queueSchema } from '../../../http/api/queue/queue.ts';
import type { siteSchema } from '../../../http/api/queue/queue-schemas.ts';
import { useConsoleData, useRefresh } from '../../data.ts';
import { siteName } from '../../parts/site-name.ts';
import { Failure } from '../../parts.tsx';
import { useNavigation } from '../../routing.ts';
import { useTexts } from '../../texts.ts';

type Installation = z.output<typeof installationSchema>;

/** They cause no events of an account. */
const REFRESH_MS = 30_000;

/** For operators: problems of the disk, certificates, backups and the way to receivers; nothing if there are none. */
export function InstallationProblems() {
  const { t, time, size } = useTexts();
  const { href } = useNavigation();
  const facts = useConsoleData<Installation>('/console/api/web-setup/installation');
  const queue = useConsoleData<z.output<typeof queueSchema>>('/console/api/web-setup/queue');
  const sites = useConsoleData<{ sites: z.output<typeof siteSchema>[] }>(
    '/console/api/web-setup/queue/sites',
  );
  const reload = useCallback(() => {
    for (const data of [facts, queue, sites]) data.reload();
  }, [facts.reload, queue.reload, sites.reload]);
  useRefresh(reload, REFRESH_MS);
  const problems: { text: string; address: string }[] = [];
  const add = (text: string, section: string) =>
    problems.push({ text, address: href('system', { section }) });
  if (queue.value !== null && queue.value.stopped !== null)
    problems.push({ text: t('system.stopped', { reason: queue.value.stopped }), address: href('queue') });
  if (facts.value !== null) {
    const { storage, certificates, backups, egress } = facts.value;
    // As the check of the disk: a warning in time.
    if (storage.freeBytes < 2 * storage.minFreeBytes) {
      const values = { free: size(storage.freeBytes), limit: size(storage.minFreeBytes) };
      add(t('overview.installation.disk', values), 'storage');
    }
    for (const { host, failures, lastError, expiresAt } of certificates) {
      if (failures > 0)
        add(t('overview.installation.certificate', { host, error: lastError ?? '' }), 'certificates');
      else if (expiresAt !== null && Date.parse(expiresAt) < Date.now())
        add(t('overview.installation.expired', { host }), 'certificates');
    }
    if (backups !== null && backups.error !== null)
      add(t('system.backups.failed', { error: backups.error }), 'backups');
    for (const { address, refusedBy } of egress)
      for (const { provider, reply } of refusedBy)
        add(t('overview.installation.refused', { address, provider, reply }), 'egress');
  }
  for (const { suspendedUntil, limitedUntil, ...each } of sites.value?.sites ?? []) {
    const site = siteName(each);
    if (suspendedUntil !== null)
      add(t('overview.installation.suspended', { site, time: time(suspendedUntil) }), 'sites');
    else if (limitedUntil !== null)
      add(t('overview.installation.limited', { site, time: time(limitedUntil) }), 'sites');
  }
  const failed = [facts, queue, sites].find(({ error }) => error !== null);
  if (problems.length === 0 && failed === undefined) return null;
  return (
    <>
      <h2>{t('overview.installation')}</h2>
      {failed !== undefined && failed.error !== null && (
        <Failure error={failed.error} retry={failed.reload} />
      )}
      <ul class="problems">
        {problems.map(({ text, address }) => (
          <li key={text}>
            <a href={address}>{text}</a>
          </li>
        ))}
      </ul>
    </>
  );
}
