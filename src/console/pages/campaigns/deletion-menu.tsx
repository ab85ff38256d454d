import { RowActions } from '../../parts.tsx';
import { useTexts } from '../../texts.ts';

/** The menu of a campaign that can be deleted; it asks first. */
export function DeletionMenu({ name, remove }: { name: string; remove: () => Promise<void> }) {
  const { t } = useTexts();
  return (
    <RowActions
      label={name}
      actions={[
        {
          label: t('campaigns.delete'),
          question: t('campaigns.delete.confirm', { name }),
          isDanger: true,
          action: remove,
        },
      ]}
    />
  );
}
