// Made from schemas/*.conf by `python -m docs.endpoints`, for the endpoints that the pages call: do not edit it.

/** Fields of a request that are named by their path, such as "models.input.model". */
export interface Paths {
  readonly [path: `${string}.${string}`]: unknown;
}

export interface Artifact {
  readonly key: string;
  readonly type: string;
  readonly mode?: "input" | "output";
  readonly uri?: string;
  readonly content_size?: number;
  readonly hash?: string;
  readonly timestamp?: number;
  readonly type_data?: {
    readonly preview?: string;
    readonly content_type?: string;
    readonly data_hash?: string;
  };
  readonly display_data?: readonly (readonly unknown[])[];
}

export interface ChangeManyRequest {
  readonly ids: readonly string[];
  readonly status_reason?: string;
  readonly status_message?: string;
  readonly force?: boolean;
  readonly include_pipeline_steps?: boolean;
}

export interface ChangeManyResponse {
  readonly succeeded: readonly {
    readonly id: string;
  }[];
  readonly failed: readonly FailedItem[];
}

export interface ConfigurationItem {
  readonly name?: string;
  readonly value?: string;
  readonly type?: string;
  readonly description?: string;
}

export interface CountedTasks {
  readonly name?: string;
  readonly comment?: string;
  readonly report?: string;
  readonly search_text?: string;
  readonly _any_?: MultiFieldPatternData;
  readonly _all_?: MultiFieldPatternData;
  readonly _or_?: MultiFieldPatternData;
  readonly _and_?: MultiFieldPatternData;
  readonly filters?: Readonly<Record<string, unknown>>;
}

export interface CredentialKey {
  readonly access_key: string;
  readonly label?: string | null;
  readonly last_used?: string | null;
  readonly last_used_from?: string | null;
  readonly created?: string;
  readonly scopes?: readonly ("read" | "events" | "files" | "write" | "all")[] | null;
  readonly project?: string | null;
  readonly expires?: string | null;
}

export interface Credentials {
  readonly access_key: string;
  readonly secret_key: string;
  readonly label?: string | null;
  readonly scopes?: readonly ("read" | "events" | "files" | "write" | "all")[];
  readonly project?: string;
  readonly expires?: string;
}

export interface CurrentUser {
  readonly id: string;
  readonly name: string;
  readonly given_name?: string;
  readonly family_name?: string;
  readonly email?: string;
  readonly avatar?: string;
  readonly role: string;
  readonly created?: string;
  readonly created_in_version?: string;
  readonly service?: boolean;
  readonly company: {
    readonly id: string;
    readonly name: string;
  };
}

export interface Entry {
  readonly task: string;
  readonly added: string;
}

export interface EventsMetricVariants {
  readonly metric: string;
  readonly variants?: readonly string[];
}

export interface Execution {
  readonly queue?: string;
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly model_desc?: Readonly<Record<string, unknown>>;
  readonly model?: string;
  readonly docker_cmd?: string;
  readonly model_labels?: Readonly<Record<string, number>>;
  readonly framework?: string;
  readonly artifacts?: readonly Artifact[];
}

export interface ExecutionEx {
  readonly queue?: Reference;
  readonly parameters?: Readonly<Record<string, unknown>>;
  readonly model_desc?: Readonly<Record<string, unknown>>;
  readonly model?: string;
  readonly docker_cmd?: string;
  readonly model_labels?: Readonly<Record<string, number>>;
  readonly framework?: string;
  readonly artifacts?: readonly Artifact[];
}

export interface FailedItem {
  readonly id: string;
  readonly error: {
    readonly codes: readonly number[];
    readonly msg: string;
    readonly data?: Readonly<Record<string, unknown>>;
  };
}

export interface FileUrls {
  readonly event_urls?: readonly string[];
  readonly model_urls?: readonly string[];
  readonly artifact_urls?: readonly string[];
}

export interface GetAllRequest {
  readonly id?: unknown;
  readonly name?: string;
  readonly user?: unknown;
  readonly project?: unknown;
  readonly include_subprojects?: boolean;
  readonly type?: unknown;
  readonly status?: unknown;
  readonly parent?: unknown;
  readonly tags?: unknown;
  readonly system_tags?: unknown;
  readonly status_changed?: unknown;
  readonly created?: unknown;
  readonly started?: unknown;
  readonly completed?: unknown;
  readonly last_update?: unknown;
  readonly last_change?: unknown;
  readonly last_iteration?: readonly unknown[];
  readonly active_duration?: readonly unknown[];
  readonly _any_?: MultiFieldPatternData;
  readonly _all_?: MultiFieldPatternData;
  readonly filters?: Readonly<Record<string, unknown>>;
  readonly search_text?: string;
  readonly search_hidden?: boolean;
  readonly allow_public?: boolean;
  readonly only_fields?: readonly string[];
  readonly order_by?: readonly string[];
  readonly page?: number;
  readonly page_size?: number;
  readonly size?: number;
  readonly scroll_id?: string;
  readonly refresh_scroll?: boolean;
}

export interface Ids {
  readonly ids: readonly string[];
}

export interface LastMetric {
  readonly metric: string;
  readonly variant: string;
  readonly value?: number | null;
  readonly min_value?: number | null;
  readonly min_value_iteration?: number | null;
  readonly max_value?: number | null;
  readonly max_value_iteration?: number | null;
  readonly first_value?: number | null;
  readonly first_value_iteration?: number;
  readonly mean_value?: number | null;
  readonly count?: number;
  readonly x_axis_label?: string;
}

export interface Many {
  readonly succeeded: readonly Readonly<Record<string, unknown>>[];
  readonly failed: readonly FailedItem[];
}

export interface MetadataItem {
  readonly key: string;
  readonly type?: string;
  readonly value?: string;
}

export interface ModelEx {
  readonly id: string;
  readonly name?: string;
  readonly user?: Reference;
  readonly company?: Reference;
  readonly created?: string;
  readonly last_update?: string;
  readonly last_change?: string;
  readonly last_changed_by?: string;
  readonly task?: Reference | null;
  readonly parent?: Reference | null;
  readonly project?: Reference | null;
  readonly comment?: string;
  readonly tags?: readonly string[];
  readonly system_tags?: readonly string[];
  readonly framework?: string | null;
  readonly design?: Readonly<Record<string, unknown>>;
  readonly labels?: Readonly<Record<string, number>>;
  readonly uri?: string;
  readonly ready?: boolean;
  readonly metadata?: Readonly<Record<string, MetadataItem>>;
  readonly last_iteration?: number;
  readonly last_metrics?: Readonly<Record<string, unknown>>;
  readonly metric_stats?: Readonly<Record<string, unknown>>;
  readonly ui_cache?: Readonly<Record<string, unknown>>;
  readonly stats?: {
    readonly labels_count?: number;
  };
}

export interface ModelReference {
  readonly id: string;
  readonly name?: string | null;
  readonly project?: string | null;
  readonly framework?: string | null;
  readonly uri?: string | null;
}

export interface ModelsEx {
  readonly models: readonly ModelEx[];
  readonly scroll_id?: string;
}

export interface ModelsUpdated {
  readonly updated: number;
  readonly fields?: Readonly<Record<string, unknown>>;
}

export interface MultiFieldPatternData {
  readonly fields?: readonly string[];
  readonly pattern?: string;
  readonly datetime?: unknown;
}

export interface NextSampleRequest {
  readonly task: string;
  readonly scroll_id: string;
  readonly navigate_earlier?: boolean;
  readonly next_iteration?: boolean;
  readonly model_events?: boolean;
}

export interface ParamKey {
  readonly section?: string;
  readonly name?: string;
}

export interface ParamsItem {
  readonly section?: string;
  readonly name?: string;
  readonly value?: string;
  readonly type?: string;
  readonly description?: string;
}

export interface Plot {
  readonly task: string;
  readonly metric: string;
  readonly variant: string;
  readonly iter: number;
  readonly timestamp: number;
  readonly plot_str?: string;
}

export interface PlotSampleResponse {
  readonly events: readonly Plot[];
  readonly min_iteration: number | null;
  readonly max_iteration: number | null;
  readonly scroll_id: string;
}

export interface Project {
  readonly id: string;
  readonly name?: string;
  readonly basename?: string;
  readonly description?: string;
  readonly user?: string;
  readonly company?: string;
  readonly created?: string;
  readonly last_update?: string;
  readonly tags?: readonly string[];
  readonly system_tags?: readonly string[];
  readonly default_output_destination?: string;
  readonly parent?: string;
  readonly path?: readonly string[];
}

export interface ProjectEx {
  readonly id: string;
  readonly name?: string;
  readonly basename?: string;
  readonly description?: string;
  readonly user?: Reference;
  readonly company?: Reference;
  readonly created?: string;
  readonly last_update?: string;
  readonly tags?: readonly string[];
  readonly system_tags?: readonly string[];
  readonly default_output_destination?: string;
  readonly parent?: Reference;
  readonly path?: readonly string[];
  readonly stats?: {
    readonly active?: StateStats;
    readonly archived?: StateStats;
    readonly datasets?: {
      readonly count?: number;
      readonly tags?: readonly string[];
    };
  };
  readonly sub_projects?: readonly {
    readonly id: string;
    readonly name: string;
  }[];
  readonly hidden?: boolean;
  readonly own_datasets?: number;
  readonly own_tasks?: number;
  readonly own_models?: number;
  readonly dataset_stats?: {
    readonly file_count?: number;
    readonly total_size?: number;
  } | null;
}

export interface PublicResponse {
  readonly updated?: number;
}

export interface Published {
  readonly updated?: number;
  readonly published_task?: {
    readonly id?: string;
    readonly data?: ModelsUpdated;
  };
}

export interface Queue {
  readonly id: string;
  readonly name?: string;
  readonly display_name?: string;
  readonly user?: string | null;
  readonly company?: string;
  readonly created?: string;
  readonly last_update?: string;
  readonly tags?: readonly string[];
  readonly system_tags?: readonly string[];
  readonly entries?: readonly Entry[];
  readonly entries_count?: number;
  readonly metadata?: Readonly<Record<string, MetadataItem>>;
}

export interface Queues {
  readonly queues: readonly Queue[];
  readonly scroll_id?: string;
}

export interface QueuesQuery {
  readonly id?: unknown;
  readonly name?: string;
  readonly tags?: unknown;
  readonly system_tags?: unknown;
  readonly _any_?: MultiFieldPatternData;
  readonly _all_?: MultiFieldPatternData;
  readonly search_text?: string;
  readonly filters?: Readonly<Record<string, unknown>>;
  readonly search_hidden?: boolean;
  readonly only_fields?: readonly string[];
  readonly order_by?: readonly string[];
  readonly page?: number;
  readonly page_size?: number;
  readonly size?: number;
  readonly scroll_id?: string;
  readonly refresh_scroll?: boolean;
  readonly max_task_entries?: number;
  readonly count_task_entries?: boolean;
}

export interface Reference {
  readonly id: string;
  readonly name?: string | null;
  readonly project?: string | null;
}

export interface ReportedMetric {
  readonly metric: string;
  readonly variants: readonly string[];
}

export interface ReportsReport {
  readonly id: string;
  readonly name?: string;
  readonly user?: Reference;
  readonly company?: Reference;
  readonly type?: "report";
  readonly status?: "created" | "published";
  readonly status_changed?: string;
  readonly status_reason?: string;
  readonly status_message?: string;
  readonly comment?: string;
  readonly report?: string;
  readonly report_assets?: readonly string[];
  readonly project?: Reference;
  readonly tags?: readonly string[];
  readonly system_tags?: readonly string[];
  readonly created?: string;
  readonly published?: string;
  readonly last_update?: string;
}

export interface Script {
  readonly binary?: string;
  readonly repository?: string;
  readonly tag?: string;
  readonly branch?: string;
  readonly version_num?: string;
  readonly entry_point?: string;
  readonly working_dir?: string;
  readonly requirements?: Readonly<Record<string, unknown>>;
  readonly diff?: string;
}

export interface Session {
  readonly id: string;
  readonly created: string;
  readonly last_used: string;
  readonly expires: string;
  readonly address: string;
  readonly agent: string;
  readonly worker: string;
  readonly current: boolean;
}

export interface SingleValue {
  readonly metric: string;
  readonly variant: string;
  readonly value: number | null;
  readonly timestamp: number;
}

export interface StateStats {
  readonly total_tasks?: number;
  readonly status_count?: Readonly<Record<string, number>>;
  readonly completed_tasks_24h?: number;
  readonly total_runtime?: number;
  readonly last_task_run?: string | null;
}

export interface TagsRequest {
  readonly projects?: readonly string[];
  readonly include_system?: boolean;
  readonly filter?: {
    readonly tags?: unknown;
    readonly system_tags?: unknown;
  };
}

export interface TagsResponse {
  readonly tags: readonly string[];
  readonly system_tags?: readonly string[];
}

export interface Task {
  readonly id: string;
  readonly name?: string;
  readonly user?: string;
  readonly company?: string;
  readonly type?: "training" | "testing" | "inference" | "data_processing" | "application" | "monitor" | "controller" | "optimizer" | "service" | "qc" | "custom" | "dataset_import" | "annotation" | "annotation_manual" | "report";
  readonly status?: "created" | "queued" | "in_progress" | "stopped" | "closed" | "failed" | "completed" | "publishing" | "published" | "unknown";
  readonly status_changed?: string;
  readonly status_reason?: string;
  readonly status_message?: string;
  readonly comment?: string;
  readonly created?: string;
  readonly started?: string;
  readonly completed?: string;
  readonly published?: string;
  readonly active_duration?: number;
  readonly parent?: string;
  readonly project?: string;
  readonly output?: {
    readonly destination?: string;
    readonly result?: string;
    readonly error?: string;
  };
  readonly execution?: Execution;
  readonly script?: Script;
  readonly container?: Readonly<Record<string, string>>;
  readonly models?: TaskModels;
  readonly hyperparams?: Readonly<Record<string, Readonly<Record<string, ParamsItem>>>>;
  readonly configuration?: Readonly<Record<string, ConfigurationItem>>;
  readonly runtime?: Readonly<Record<string, unknown>>;
  readonly tags?: readonly string[];
  readonly system_tags?: readonly string[];
  readonly last_update?: string;
  readonly last_change?: string;
  readonly last_changed_by?: string;
  readonly last_worker?: string;
  readonly last_worker_report?: string;
  readonly last_iteration?: number;
  readonly last_metrics?: Readonly<Record<string, Readonly<Record<string, LastMetric>>>>;
  readonly metric_stats?: Readonly<Record<string, unknown>>;
}

export interface TaskEx {
  readonly id: string;
  readonly name?: string;
  readonly user?: Reference;
  readonly company?: Reference;
  readonly type?: "training" | "testing" | "inference" | "data_processing" | "application" | "monitor" | "controller" | "optimizer" | "service" | "qc" | "custom" | "dataset_import" | "annotation" | "annotation_manual" | "report";
  readonly status?: "created" | "queued" | "in_progress" | "stopped" | "closed" | "failed" | "completed" | "publishing" | "published" | "unknown";
  readonly status_changed?: string;
  readonly status_reason?: string;
  readonly status_message?: string;
  readonly comment?: string;
  readonly created?: string;
  readonly started?: string;
  readonly completed?: string;
  readonly published?: string;
  readonly active_duration?: number;
  readonly parent?: Reference;
  readonly project?: Reference;
  readonly output?: {
    readonly destination?: string;
    readonly result?: string;
    readonly error?: string;
  };
  readonly execution?: ExecutionEx;
  readonly script?: Script;
  readonly container?: Readonly<Record<string, string>>;
  readonly models?: TaskModelsEx;
  readonly hyperparams?: Readonly<Record<string, Readonly<Record<string, ParamsItem>>>>;
  readonly configuration?: Readonly<Record<string, ConfigurationItem>>;
  readonly runtime?: Readonly<Record<string, unknown>>;
  readonly tags?: readonly string[];
  readonly system_tags?: readonly string[];
  readonly last_update?: string;
  readonly last_change?: string;
  readonly last_changed_by?: string;
  readonly last_worker?: string;
  readonly last_worker_report?: string;
  readonly last_iteration?: number;
  readonly last_metrics?: Readonly<Record<string, Readonly<Record<string, LastMetric>>>>;
  readonly metric_stats?: Readonly<Record<string, unknown>>;
}

export interface TaskModelItem {
  readonly name: string;
  readonly model: string;
}

export interface TaskModelItemEx {
  readonly name: string;
  readonly model: ModelReference;
}

export interface TaskModels {
  readonly input?: readonly TaskModelItem[];
  readonly output?: readonly TaskModelItem[];
}

export interface TaskModelsEx {
  readonly input?: readonly TaskModelItemEx[];
  readonly output?: readonly TaskModelItemEx[];
}

export interface TasksDeletedResponse {
  readonly deleted: number;
}

export interface TasksExResponse {
  readonly tasks: readonly TaskEx[];
  readonly scroll_id?: string;
}

export interface TasksResponse {
  readonly tasks: readonly Task[];
  readonly scroll_id?: string;
}

export interface UpdateResponse {
  readonly updated: number;
  readonly fields?: Readonly<Record<string, unknown>>;
}

export interface UpdatedResponse {
  readonly updated: number;
}

export interface User {
  readonly id: string;
  readonly name?: string;
  readonly given_name?: string;
  readonly family_name?: string;
  readonly email?: string;
  readonly avatar?: string;
  readonly role?: "admin" | "user" | "guest";
  readonly company?: string;
  readonly created?: string;
  readonly created_in_version?: string;
  readonly service?: boolean;
}

/** By endpoint, the body of a request, and the `data` of the answer. */
export interface Endpoints {
  "auth.begin_provider_login": {
    request: {
      readonly next?: string;
    };
    answer: {
      readonly url: string;
    };
  };
  "auth.create_credentials": {
    request: {
      readonly label?: string;
      readonly scopes?: readonly ("read" | "events" | "files" | "write" | "all")[];
      readonly project?: string;
      readonly expiration_sec?: number;
    };
    answer: {
      readonly credentials: Credentials;
    };
  };
  "auth.create_user": {
    request: {
      readonly name: string;
      readonly given_name?: string;
      readonly family_name?: string;
      readonly email?: string;
      readonly avatar?: string;
      readonly company?: string;
      readonly role?: "admin" | "user";
      readonly service?: boolean;
    };
    answer: {
      readonly id: string;
    };
  };
  "auth.edit_credentials": {
    request: {
      readonly access_key: string;
      readonly label?: string | null;
    };
    answer: PublicResponse;
  };
  "auth.finish_provider_login": {
    request: {
      readonly state: string;
      readonly code?: string;
      readonly error?: string;
      readonly iss?: string;
    };
    answer: {
      readonly next: string;
    };
  };
  "auth.get_credentials": {
    request: Readonly<Record<string, never>>;
    answer: {
      readonly credentials: readonly CredentialKey[];
    };
  };
  "auth.login": {
    request: {
      readonly expiration_sec?: number;
    };
    answer: {
      readonly token?: string;
    };
  };
  "auth.login_by_link": {
    request: {
      readonly link: string;
    };
    answer: Readonly<Record<string, never>>;
  };
  "auth.revoke_credentials": {
    request: {
      readonly access_key: string;
    };
    answer: {
      readonly revoked?: number;
    };
  };
  "events.get_multi_task_metrics": {
    request: {
      readonly tasks: readonly string[];
      readonly event_type?: "training_stats_scalar" | "training_stats_vector" | "training_debug_image" | "plot" | "log" | "*";
      readonly model_events?: boolean;
    };
    answer: {
      readonly metrics: readonly ReportedMetric[];
    };
  };
  "events.get_multi_task_plots": {
    request: {
      readonly tasks: readonly string[];
      readonly iters?: number;
      readonly last_iters_per_task_metric?: boolean;
      readonly metrics?: readonly EventsMetricVariants[];
      readonly scroll_id?: string;
      readonly no_scroll?: boolean;
      readonly model_events?: boolean;
    };
    answer: {
      readonly plots: Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, Readonly<Record<string, {
        readonly name: string;
        readonly plots: readonly Plot[];
      }>>>>>>>>;
      readonly returned: number;
      readonly total: number;
      readonly scroll_id?: string | null;
    };
  };
  "events.get_plot_sample": {
    request: {
      readonly task: string;
      readonly metric: string;
      readonly iteration?: number;
      readonly navigate_current_metric?: boolean;
      readonly refresh?: boolean;
      readonly scroll_id?: string;
      readonly model_events?: boolean;
    };
    answer: PlotSampleResponse;
  };
  "events.get_scalar_metrics_and_variants": {
    request: {
      readonly task: string;
      readonly model_events?: boolean;
    };
    answer: {
      readonly metrics: Readonly<Record<string, readonly string[]>>;
    };
  };
  "events.get_task_plots": {
    request: {
      readonly task: string;
      readonly iters?: number;
      readonly scroll_id?: string;
      readonly no_scroll?: boolean;
      readonly metrics?: readonly EventsMetricVariants[];
      readonly model_events?: boolean;
    };
    answer: {
      readonly plots: readonly Plot[];
      readonly returned: number;
      readonly total: number;
      readonly scroll_id: string | null;
    };
  };
  "events.get_task_single_value_metrics": {
    request: {
      readonly tasks: readonly string[];
      readonly metrics?: readonly EventsMetricVariants[];
      readonly model_events?: boolean;
    };
    answer: {
      readonly tasks: readonly {
        readonly task: string;
        readonly task_name: string;
        readonly values: readonly SingleValue[];
      }[];
    };
  };
  "events.next_plot_sample": {
    request: NextSampleRequest;
    answer: PlotSampleResponse;
  };
  "login.logout": {
    request: Readonly<Record<string, never>>;
    answer: {
      readonly url?: string;
    };
  };
  "login.supported_modes": {
    request: {
      readonly state?: string;
      readonly callback_url_prefix?: string;
    };
    answer: {
      readonly authenticated: boolean;
      readonly basic: {
        readonly enabled: boolean;
        readonly guest: {
          readonly enabled: boolean;
          readonly name?: string;
          readonly username?: string;
          readonly password?: string;
        };
      };
      readonly provider: {
        readonly name?: string;
      };
      readonly sso?: Readonly<Record<string, unknown>>;
      readonly sso_providers?: readonly Readonly<Record<string, unknown>>[];
      readonly server_errors?: Readonly<Record<string, unknown>>;
    };
  };
  "models.archive_many": {
    request: Ids;
    answer: Many;
  };
  "models.delete": {
    request: {
      readonly model: string;
      readonly force?: boolean;
      readonly delete_external_artifacts?: boolean;
    };
    answer: {
      readonly deleted?: boolean;
      readonly url?: string;
    };
  };
  "models.get_all_ex": {
    request: {
      readonly id?: unknown;
      readonly name?: string;
      readonly user?: unknown;
      readonly project?: unknown;
      readonly include_subprojects?: boolean;
      readonly task?: unknown;
      readonly parent?: unknown;
      readonly uri?: unknown;
      readonly framework?: unknown;
      readonly ready?: boolean;
      readonly tags?: unknown;
      readonly system_tags?: unknown;
      readonly created?: unknown;
      readonly last_update?: unknown;
      readonly last_change?: unknown;
      readonly _any_?: MultiFieldPatternData;
      readonly _all_?: MultiFieldPatternData;
      readonly filters?: Readonly<Record<string, unknown>>;
      readonly search_text?: string;
      readonly search_hidden?: boolean;
      readonly allow_public?: boolean;
      readonly only_fields?: readonly string[];
      readonly order_by?: readonly string[];
      readonly page?: number;
      readonly page_size?: number;
      readonly size?: number;
      readonly scroll_id?: string;
      readonly refresh_scroll?: boolean;
      readonly include_stats?: boolean;
    } & Paths;
    answer: ModelsEx;
  };
  "models.set_ready": {
    request: {
      readonly model: string;
      readonly publish_task?: boolean;
      readonly force_publish_task?: boolean;
    };
    answer: Published;
  };
  "models.unarchive_many": {
    request: Ids;
    answer: Many;
  };
  "models.update": {
    request: {
      readonly model: string;
      readonly name?: string;
      readonly comment?: string;
      readonly tags?: readonly string[];
      readonly system_tags?: readonly string[];
      readonly ready?: boolean;
      readonly created?: string;
      readonly ui_cache?: Readonly<Record<string, unknown>>;
      readonly project?: string;
      readonly task?: string;
      readonly iteration?: number;
      readonly metadata?: readonly MetadataItem[] | Readonly<Record<string, {
        readonly key?: string;
        readonly type?: string;
        readonly value?: string;
      }>>;
    };
    answer: ModelsUpdated;
  };
  "models.update_tags": {
    request: {
      readonly ids: readonly string[];
      readonly add_tags?: readonly string[];
      readonly remove_tags?: readonly string[];
    };
    answer: {
      readonly updated: number;
    };
  };
  "organization.get_tags": {
    request: {
      readonly include_system?: boolean;
      readonly filter?: {
        readonly tags?: unknown;
        readonly system_tags?: unknown;
      };
    };
    answer: {
      readonly tags: readonly string[];
      readonly system_tags?: readonly string[];
    };
  };
  "projects.get_all": {
    request: {
      readonly id?: unknown;
      readonly name?: string;
      readonly basename?: string;
      readonly description?: string;
      readonly user?: unknown;
      readonly tags?: unknown;
      readonly system_tags?: unknown;
      readonly parent?: unknown;
      readonly shallow_search?: boolean;
      readonly created?: unknown;
      readonly last_update?: unknown;
      readonly _any_?: MultiFieldPatternData;
      readonly _all_?: MultiFieldPatternData;
      readonly filters?: Readonly<Record<string, unknown>>;
      readonly search_text?: string;
      readonly search_hidden?: boolean;
      readonly allow_public?: boolean;
      readonly only_fields?: readonly string[];
      readonly order_by?: readonly string[];
      readonly page?: number;
      readonly page_size?: number;
      readonly size?: number;
      readonly scroll_id?: string;
      readonly refresh_scroll?: boolean;
    };
    answer: {
      readonly projects: readonly Project[];
      readonly scroll_id?: string;
    };
  };
  "projects.get_all_ex": {
    request: {
      readonly id?: unknown;
      readonly name?: string;
      readonly basename?: string;
      readonly description?: string;
      readonly user?: unknown;
      readonly tags?: unknown;
      readonly system_tags?: unknown;
      readonly parent?: unknown;
      readonly shallow_search?: boolean;
      readonly created?: unknown;
      readonly last_update?: unknown;
      readonly _any_?: MultiFieldPatternData;
      readonly _all_?: MultiFieldPatternData;
      readonly filters?: Readonly<Record<string, unknown>>;
      readonly search_text?: string;
      readonly search_hidden?: boolean;
      readonly allow_public?: boolean;
      readonly only_fields?: readonly string[];
      readonly order_by?: readonly string[];
      readonly page?: number;
      readonly page_size?: number;
      readonly size?: number;
      readonly scroll_id?: string;
      readonly refresh_scroll?: boolean;
      readonly active_users?: readonly string[];
      readonly include_stats?: boolean;
      readonly include_stats_filter?: CountedTasks;
      readonly stats_for_state?: "active" | "archived" | null;
      readonly stats_with_children?: boolean;
      readonly non_public?: boolean;
      readonly children_type?: "dataset" | "pipeline" | "report";
      readonly children_tags?: unknown;
      readonly children_tags_filter?: Readonly<Record<string, unknown>>;
      readonly include_dataset_stats?: boolean;
      readonly check_own_contents?: boolean;
    };
    answer: {
      readonly projects: readonly ProjectEx[];
      readonly scroll_id?: string;
    };
  };
  "projects.get_by_id": {
    request: {
      readonly project: string;
    };
    answer: {
      readonly project: Project;
    };
  };
  "projects.get_hyper_parameters": {
    request: {
      readonly project: string;
      readonly include_subprojects?: boolean;
      readonly page?: number;
      readonly page_size?: number;
    };
    answer: {
      readonly parameters: readonly {
        readonly section: string;
        readonly name: string;
      }[];
      readonly total: number;
      readonly remaining: number;
    };
  };
  "projects.get_task_tags": {
    request: TagsRequest;
    answer: TagsResponse;
  };
  "projects.get_unique_metric_variants": {
    request: {
      readonly project?: string;
      readonly include_subprojects?: boolean;
      readonly ids?: readonly string[];
      readonly model_metrics?: boolean;
    };
    answer: {
      readonly metrics: readonly {
        readonly metric: string;
        readonly metric_hash: string;
        readonly variant: string;
        readonly variant_hash: string;
      }[];
    };
  };
  "queues.get_all": {
    request: QueuesQuery;
    answer: Queues;
  };
  "reports.get_all_ex": {
    request: {
      readonly id?: unknown;
      readonly name?: string;
      readonly user?: unknown;
      readonly project?: unknown;
      readonly include_subprojects?: boolean;
      readonly status?: unknown;
      readonly tags?: unknown;
      readonly system_tags?: unknown;
      readonly status_changed?: unknown;
      readonly _any_?: MultiFieldPatternData;
      readonly _all_?: MultiFieldPatternData;
      readonly filters?: Readonly<Record<string, unknown>>;
      readonly search_text?: string;
      readonly allow_public?: boolean;
      readonly only_fields?: readonly string[];
      readonly order_by?: readonly string[];
      readonly size?: number;
      readonly page?: number;
      readonly page_size?: number;
      readonly scroll_id?: string;
      readonly refresh_scroll?: boolean;
    };
    answer: {
      readonly tasks: readonly ReportsReport[];
      readonly scroll_id?: string;
    };
  };
  "tasks.archive": {
    request: {
      readonly tasks: readonly string[];
      readonly status_reason?: string;
      readonly status_message?: string;
      readonly include_pipeline_steps?: boolean;
    };
    answer: {
      readonly archived?: number;
    };
  };
  "tasks.archive_many": {
    request: {
      readonly ids: readonly string[];
      readonly status_reason?: string;
      readonly status_message?: string;
      readonly include_pipeline_steps?: boolean;
    };
    answer: ChangeManyResponse;
  };
  "tasks.clone": {
    request: {
      readonly task: string;
      readonly new_task_name?: string;
      readonly new_task_comment?: string;
      readonly new_task_tags?: readonly string[];
      readonly new_task_system_tags?: readonly string[];
      readonly new_task_parent?: string;
      readonly new_task_project?: string;
      readonly new_project_name?: string;
      readonly new_task_hyperparams?: Readonly<Record<string, Readonly<Record<string, ParamsItem>>>>;
      readonly new_task_configuration?: Readonly<Record<string, ConfigurationItem>>;
      readonly new_task_container?: Readonly<Record<string, string>>;
      readonly new_task_input_models?: readonly TaskModelItem[];
      readonly validate_references?: boolean;
      readonly execution_overrides?: Execution;
    };
    answer: {
      readonly id: string;
      readonly new_project?: {
        readonly id?: string;
        readonly name?: string;
      };
    };
  };
  "tasks.delete": {
    request: {
      readonly task: string;
      readonly force?: boolean;
      readonly delete_output_models?: boolean;
      readonly delete_external_artifacts?: boolean;
      readonly return_file_urls?: boolean;
      readonly include_pipeline_steps?: boolean;
    };
    answer: {
      readonly deleted?: boolean;
      readonly updated_children?: number;
      readonly updated_models?: number;
      readonly deleted_models?: number;
      readonly events?: {
        readonly deleted?: number;
      };
      readonly urls?: FileUrls;
    };
  };
  "tasks.delete_hyper_params": {
    request: {
      readonly task: string;
      readonly force?: boolean;
      readonly hyperparams: readonly ParamKey[];
    };
    answer: TasksDeletedResponse;
  };
  "tasks.delete_many": {
    request: {
      readonly ids: readonly string[];
      readonly force?: boolean;
      readonly delete_output_models?: boolean;
      readonly delete_external_artifacts?: boolean;
      readonly return_file_urls?: boolean;
      readonly include_pipeline_steps?: boolean;
    };
    answer: ChangeManyResponse;
  };
  "tasks.dequeue": {
    request: {
      readonly task: string;
      readonly status_reason?: string;
      readonly status_message?: string;
      readonly new_status?: "created" | "queued" | "in_progress" | "stopped" | "closed" | "failed" | "completed" | "publishing" | "published" | "unknown";
    };
    answer: {
      readonly dequeued?: number;
      readonly updated?: number;
      readonly fields?: Readonly<Record<string, unknown>>;
    };
  };
  "tasks.edit_hyper_params": {
    request: {
      readonly task: string;
      readonly force?: boolean;
      readonly hyperparams: readonly ParamsItem[];
      readonly replace_hyperparams?: "none" | "section" | "all";
    };
    answer: UpdatedResponse;
  };
  "tasks.enqueue": {
    request: {
      readonly task: string;
      readonly status_reason?: string;
      readonly status_message?: string;
      readonly force?: boolean;
      readonly queue?: string;
      readonly queue_name?: string;
      readonly update_execution_queue?: boolean;
      readonly verify_watched_queue?: boolean;
    };
    answer: {
      readonly queued?: number;
      readonly updated?: number;
      readonly fields?: Readonly<Record<string, unknown>>;
      readonly queue_watched?: boolean;
    };
  };
  "tasks.enqueue_many": {
    request: {
      readonly ids: readonly string[];
      readonly status_reason?: string;
      readonly status_message?: string;
      readonly force?: boolean;
      readonly queue?: string;
      readonly queue_name?: string;
      readonly verify_watched_queue?: boolean;
      readonly validate_tasks?: boolean;
    };
    answer: ChangeManyResponse;
  };
  "tasks.get_all": {
    request: GetAllRequest & Paths;
    answer: TasksResponse;
  };
  "tasks.get_all_ex": {
    request: GetAllRequest & Paths;
    answer: TasksExResponse;
  };
  "tasks.move": {
    request: {
      readonly ids: readonly string[];
      readonly project?: string | null;
      readonly project_name?: string;
    };
    answer: {
      readonly project_id?: string | null;
    };
  };
  "tasks.publish": {
    request: {
      readonly task: string;
      readonly status_reason?: string;
      readonly status_message?: string;
      readonly force?: boolean;
      readonly publish_model?: boolean;
    };
    answer: UpdateResponse;
  };
  "tasks.reset": {
    request: {
      readonly task: string;
      readonly force?: boolean;
      readonly delete_output_models?: boolean;
      readonly delete_external_artifacts?: boolean;
      readonly return_file_urls?: boolean;
      readonly clear_all?: boolean;
    };
    answer: {
      readonly updated?: number;
      readonly fields?: Readonly<Record<string, unknown>>;
      readonly dequeued?: {
        readonly removed?: number;
      };
      readonly events?: {
        readonly deleted?: number;
      };
      readonly deleted_models?: number;
      readonly urls?: FileUrls;
    };
  };
  "tasks.stop": {
    request: {
      readonly task: string;
      readonly status_reason?: string;
      readonly status_message?: string;
      readonly force?: boolean;
      readonly include_pipeline_steps?: boolean;
    };
    answer: UpdateResponse;
  };
  "tasks.stop_many": {
    request: ChangeManyRequest;
    answer: ChangeManyResponse;
  };
  "tasks.unarchive_many": {
    request: {
      readonly ids: readonly string[];
      readonly status_reason?: string;
      readonly status_message?: string;
      readonly include_pipeline_steps?: boolean;
    };
    answer: ChangeManyResponse;
  };
  "tasks.update": {
    request: {
      readonly task: string;
      readonly name?: string;
      readonly tags?: readonly string[];
      readonly system_tags?: readonly string[];
      readonly comment?: string;
      readonly project?: string;
      readonly output__error?: string;
      readonly created?: string;
    };
    answer: UpdateResponse;
  };
  "tasks.update_tags": {
    request: {
      readonly ids: readonly string[];
      readonly add_tags?: readonly string[];
      readonly remove_tags?: readonly string[];
    };
    answer: UpdatedResponse;
  };
  "users.end_sessions": {
    request: {
      readonly user?: string;
      readonly sessions?: readonly string[];
      readonly all?: boolean;
      readonly others?: boolean;
    };
    answer: {
      readonly ended: number;
    };
  };
  "users.get_all": {
    request: {
      readonly id?: unknown;
      readonly name?: string;
      readonly role?: unknown;
      readonly only_fields?: readonly string[];
      readonly order_by?: readonly string[];
      readonly page?: number;
      readonly page_size?: number;
    };
    answer: {
      readonly users: readonly User[];
    };
  };
  "users.get_current_user": {
    request: {
      readonly get_supported_features?: boolean;
    };
    answer: {
      readonly user: CurrentUser;
      readonly getting_started: Readonly<Record<string, unknown>>;
      readonly settings: {
        readonly max_download_items?: number;
      };
      readonly features?: readonly string[];
    };
  };
  "users.get_sessions": {
    request: {
      readonly user?: string;
    };
    answer: {
      readonly sessions: readonly Session[];
    };
  };
  "users.update": {
    request: {
      readonly user: string;
      readonly name?: string;
      readonly given_name?: string;
      readonly family_name?: string;
      readonly avatar?: string;
    };
    answer: {
      readonly updated?: number;
      readonly fields?: Readonly<Record<string, unknown>>;
    };
  };
}
