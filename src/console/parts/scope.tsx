import { useNavigation } from '../routing.ts';
import { useMember } from '../session.ts';
import { useTexts } from '../texts.ts';

/** Whether a page is about the account or, for operators who chose it in the address, about the installation. */
export function useScope(): { isInstallation: boolean; account: string | undefined } {
  const { location } = useNavigation();
  const { accountId, person } = useMember();
  const isInstallation = person.operator && (location.query['scope'] === 'all' || accountId === '');
  return { isInstallation, account: isInstallation ? undefined : accountId };
}

/** Links to both scopes of a page, for operators. */
export function ScopeChoice({ path }: { path: string }) {
  const { t } = useTexts();
  const { href } = useNavigation();
  const { accountId, person } = useMember();
  const { isInstallation } = useScope();
  if (!person.operator || accountId === '') return null;
  return (
    <nav class="segments" aria-label={t('scope')}>
      <a class="segment" href={href(path)} aria-current={isInstallation ? undefined : 'true'}>
        {t('scope.account')}
      </a>
      <a
        class="segment"
        href={href(path, { scope: 'all' })}
        aria-current={isInstallation ? 'true' : undefined}
      >
        {t('scope.installation')}
      </a>
    </nav>
  );
}
