import { useEffect, useRef, useState } from 'preact/hooks';
import { ApiError, uploadFile } from '../../api.ts';
import { useOperation } from '../../data.ts';
import type { DataOf } from '../../operations.ts';
import { Empty, Loaded, Notice } from '../../parts.tsx';
import { useMember } from '../../session.ts';
import { useTexts } from '../../texts.ts';
import { Icon } from '../icon/icon.tsx';
import { useRested } from '../rested.ts';
import { imageAddress } from './image-address.ts';
import './media-picker.css';

const PATH = '/web-setup/media';
const ACCEPTED = 'image/png,image/jpeg,image/gif,image/webp';
const MAX_BYTES = 5 * 1024 * 1024;
const MAX_LABEL = '5 MB';
const PAGE_SIZE = 50;

/** An image of the account. */
export type Media = DataOf<typeof PATH>['media'][number];

interface MediaLibraryProps {
  /** Called with the image that was chosen, or that was just uploaded with `isNew`. */
  onChoose: (media: Media, isNew: boolean) => void;
  /** Whether only one image is chosen: no more files are uploaded together. */
  isSingle?: boolean;
  /** Changes when the list has to be read again. */
  turn?: number;
}

/** The images of the account: to search, to upload by choice or by dropping, and to choose from. */
export function MediaLibrary({ onChoose, isSingle = false, turn = 0 }: MediaLibraryProps) {
  const { t } = useTexts();
  const { may } = useMember();
  const [typed, setTyped] = useState('');
  const search = useRested(typed);
  const [uploads, setUploads] = useState(0);
  return (
    <div class="media-library">
      {may('uploadMedia') && (
        <UploadZone
          isSingle={isSingle}
          onUploaded={(media) => {
            setUploads((last) => last + 1);
            onChoose(media, true);
          }}
        />
      )}
      <label class="field">
        <span class="unseen">{t('media.search')}</span>
        <input
          class="input"
          type="search"
          placeholder={t('media.search')}
          onInput={({ currentTarget }) => setTyped(currentTarget.value.trim())}
        />
      </label>
      <MediaPages
        key={search}
        search={search}
        turn={turn + uploads}
        onChoose={(media) => onChoose(media, false)}
      />
    </div>
  );
}

interface MediaPagesProps {
  search: string;
  turn: number;
  onChoose: (media: Media) => void;
}

/** The pages of the list that were requested, one below the other. */
function MediaPages({ search, turn, onChoose }: MediaPagesProps) {
  const [keys, setKeys] = useState<readonly string[]>(['']);
  return (
    <>
      {keys.map((key, index) => (
        <MediaPage
          key={key}
          {...{ search, turn, onChoose }}
          lastKey={key}
          onMore={index === keys.length - 1 ? (next) => setKeys([...keys, next]) : null}
        />
      ))}
    </>
  );
}

interface MediaPageProps extends MediaPagesProps {
  lastKey: string;
  /** Null: the next page is shown. */
  onMore: ((nextKey: string) => void) | null;
}

function MediaPage({ search, turn, onChoose, lastKey, onMore }: MediaPageProps) {
  const { t, number, size } = useTexts();
  const list = useOperation(PATH, {
    limit: PAGE_SIZE,
    search,
    lastKey: lastKey === '' ? undefined : lastKey,
  });
  const read = useRef(turn);
  useEffect(() => {
    if (turn !== read.current) list.reload();
    read.current = turn;
  }, [turn]);
  return (
    <Loaded data={list} isList>
      {({ media, nextKey }) => (
        <>
          {media.length === 0 && lastKey === '' ? (
            <Empty title={t(search === '' ? 'media.empty' : 'media.none')} icon="image">
              {search === '' && <p>{t('media.empty.hint')}</p>}
            </Empty>
          ) : (
            <ul class="media-grid" aria-label={t('page.media')}>
              {media.map((each) => (
                <li key={each.mediaId}>
                  <button type="button" class="media-tile" onClick={() => onChoose(each)}>
                    <span class="media-picture">
                      <img src={imageAddress(each.url)} alt="" loading="lazy" />
                    </span>
                    <span class="media-name">{each.name}</span>
                    <span class="small">
                      {number(each.width)} × {number(each.height)} · {size(each.size)}
                    </span>
                  </button>
                </li>
              ))}
            </ul>
          )}
          {nextKey !== undefined && onMore !== null && (
            <button type="button" class="button" onClick={() => onMore(nextKey)}>
              {t('media.more')}
            </button>
          )}
        </>
      )}
    </Loaded>
  );
}

/** Uploads files one after the other; states which were refused and why. */
function UploadZone({ isSingle, onUploaded }: { isSingle: boolean; onUploaded: (media: Media) => void }) {
  const { t, errorText } = useTexts();
  const { accountId } = useMember();
  const [running, setRunning] = useState<{ name: string; share: number } | null>(null);
  const [faults, setFaults] = useState<readonly string[]>([]);
  const [isOver, setOver] = useState(false);
  const input = useRef<HTMLInputElement>(null);
  const abort = useRef<AbortController | null>(null);
  useEffect(() => () => abort.current?.abort(), []);

  const upload = async (files: readonly File[]) => {
    const stop = new AbortController();
    abort.current = stop;
    setFaults([]);
    const failed = (file: File, reason: string) => setFaults((last) => [...last, `${file.name}: ${reason}`]);
    for (const file of isSingle ? files.slice(0, 1) : files) {
      if (file.size > MAX_BYTES) {
        failed(file, t('media.tooLarge', { max: MAX_LABEL }));
        continue;
      }
      setRunning({ name: file.name, share: 0 });
      try {
        const { media } = await uploadFile(PATH, {
          parameters: { filename: file.name },
          type: file.type === '' ? 'application/octet-stream' : file.type,
          file,
          account: accountId,
          signal: stop.signal,
          onProgress: (share) => setRunning({ name: file.name, share }),
        });
        onUploaded(media);
      } catch (error) {
        if (stop.signal.aborted) return;
        if (!(error instanceof ApiError)) throw error;
        failed(file, errorText(error));
      }
    }
    setRunning(null);
  };
  const isBusy = running !== null;
  return (
    <>
      <div
        class={isOver ? 'media-drop over' : 'media-drop'}
        onDragOver={(event) => {
          event.preventDefault();
          setOver(true);
        }}
        onDragLeave={() => setOver(false)}
        onDrop={(event) => {
          event.preventDefault();
          setOver(false);
          if (!isBusy) void upload([...(event.dataTransfer?.files ?? [])]);
        }}
      >
        <Icon name="upload" />
        <p>{t('media.drop')}</p>
        <button type="button" class="button" disabled={isBusy} onClick={() => input.current?.click()}>
          {t('media.choose')}
        </button>
        <input
          hidden
          type="file"
          multiple={!isSingle}
          accept={ACCEPTED}
          disabled={isBusy}
          ref={input}
          onChange={({ currentTarget }) => {
            const files = [...(currentTarget.files ?? [])];
            currentTarget.value = '';
            void upload(files);
          }}
        />
        <p class="hint">{t('media.formats', { max: MAX_LABEL })}</p>
        {running !== null && (
          <progress aria-label={t('media.uploading', { name: running.name })} max={1} value={running.share} />
        )}
      </div>
      <div role="status">
        {faults.length > 0 && (
          <Notice kind="bad" title={t('media.refused')}>
            <ul>
              {faults.map((fault) => (
                <li key={fault}>{fault}</li>
              ))}
            </ul>
          </Notice>
        )}
      </div>
    </>
  );
}
