import { saveExport } from '../../api.ts';
import { addressOf } from '../../operations.ts';
import { Icon } from '../../parts/icon/icon.tsx';
import { toast } from '../../parts/toast.tsx';
import { Outcome, useAction } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';

/** Saves the contacts that match the search, as a CSV. */
export function Export({ filters }: { filters: Readonly<Record<string, string | undefined>> }) {
  const { t } = useTexts();
  const { accountId } = useMember();
  const { outcome, run } = useAction();
  const save = () =>
    run(async () => {
      const path = addressOf('/console/exports/contacts', { ...filters, account: accountId });
      await saveExport(path, 'contacts.csv');
      toast(t('messages.content.saved', { file: 'contacts.csv' }));
      return '';
    });
  return (
    <>
      <button
        class="button"
        type="button"
        title={t('contacts.export.hint')}
        disabled={outcome?.running === true}
        onClick={() => void save()}
      >
        <Icon name="download" />
        <span class="wide-text">{t('contacts.export')}</span>
      </button>
      {outcome?.failed === true && <Outcome of={outcome} />}
    </>
  );
}
