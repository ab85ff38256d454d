import { SecretDialog } from '../../parts/secret-dialog.tsx';
import { useTexts } from '../../texts.ts';

/** The secret of a new webhook, or the one after a rotation. */
export function NewSecret({ secret, onStored }: { secret: string; onStored: () => void }) {
  const { t } = useTexts();
  return (
    <SecretDialog
      title={t('webhooks.secret.new')}
      hint={t('webhooks.secret.hint')}
      secrets={[{ value: secret, copyLabel: t('webhooks.secret.copy') }]}
      onStored={onStored}
    />
  );
}
