import { useRef, useState } from 'preact/hooks';
import { ApiError, operate } from '../../api.ts';
import { OpenDrawer } from '../../parts/drawer.tsx';
import { FactList } from '../../parts/fact-list.tsx';
import { Field } from '../../parts/field.tsx';
import { fieldText } from '../../parts/field-text.ts';
import { imageAddress } from '../../parts/media-picker/image-address.ts';
import { type Media, MediaLibrary } from '../../parts/media-picker/media-library.tsx';
import { toast } from '../../parts/toast.tsx';
import { Confirmed, Copy, Outcome, Page, useAction } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import '../../parts/media-picker/media-picker.css';

/** The images of the account. */
export function MediaPage() {
  const { t } = useTexts();
  const [turn, setTurn] = useState(0);
  const [shown, setShown] = useState<Media | null>(null);
  return (
    <Page title={t('page.media')} question={t('media.question')} curl="/web-setup/media">
      <MediaLibrary turn={turn} onChoose={(media, isNew) => (isNew ? undefined : setShown(media))} />
      {shown !== null && (
        <OpenDrawer title={shown.name} onClose={() => setShown(null)}>
          <MediaDetail
            media={shown}
            onChanged={() => {
              setTurn((last) => last + 1);
              setShown(null);
            }}
          />
        </OpenDrawer>
      )}
    </Page>
  );
}

function MediaDetail({ media, onChanged }: { media: Media; onChanged: () => void }) {
  const { t, number, size, time } = useTexts();
  const { accountId, may } = useMember();
  const { outcome, run } = useAction();
  const form = useRef<HTMLFormElement>(null);
  const [uses, setUses] = useState<string | null>(null);
  const { mediaId, name, alt, url, width, height } = media;

  const save = () =>
    run(async () => {
      const fields = new FormData(form.current ?? undefined);
      const body = { name: fieldText(fields, 'name'), alt: fieldText(fields, 'alt') };
      await operate('patch', '/web-setup/media/{mediaId}', {
        account: accountId,
        parameters: { mediaId },
        body,
      });
      onChanged();
      toast(t('media.saved', { name: body.name }));
      return '';
    });
  const remove = (force: boolean) =>
    run(async () => {
      try {
        await operate('delete', '/web-setup/media/{mediaId}', {
          account: accountId,
          parameters: { mediaId, ...(force ? { force: 'true' as const } : {}) },
        });
      } catch (error) {
        if (!(error instanceof ApiError) || error.code !== 'MEDIA_IN_USE') throw error;
        setUses(error.names.join(', '));
        return '';
      }
      onChanged();
      toast(t('media.deleted', { name }));
      return '';
    });
  return (
    <>
      <p class="media-picture media-large">
        <img src={imageAddress(url)} alt={alt} />
      </p>
      <FactList
        facts={[
          [t('media.size'), `${number(width)} × ${number(height)}, ${size(media.size)}`],
          [t('messages.created'), time(media.createdAt)],
        ]}
      />
      <p>
        <code>{url}</code> <Copy text={url} label={t('media.copy')} />
      </p>
      {may('updateMedia') && (
        <form
          ref={form}
          onSubmit={(event) => {
            event.preventDefault();
            void save();
          }}
        >
          <Field label={t('people.name')}>
            {(control) => (
              <input {...control} class="input" name="name" required maxLength={255} defaultValue={name} />
            )}
          </Field>
          <Field label={t('media.alt')} hint={t('media.alt.hint')} isOptional>
            {(control) => <input {...control} class="input" name="alt" maxLength={1000} defaultValue={alt} />}
          </Field>
          <div class="actions">
            <button class="button primary" type="submit">
              {t('media.save')}
            </button>
            <Confirmed
              key={uses}
              label={t(uses === null ? 'media.delete' : 'media.delete.anyway')}
              question={t('media.delete.confirm', { name })}
              isDanger
              action={() => remove(uses !== null)}
            />
          </div>
          {uses !== null && <p role="status">{t('media.used', { names: uses })}</p>}
          <Outcome of={outcome} />
        </form>
      )}
    </>
  );
}
