//! What a client must live through, once for every runtime.
//!
//! A scenario is an async function over the runtime of an adapter. It starts servers of its own, and
//! waits for conditions, not for times, wherever there is something to wait for.

mod house;
mod name_server;
mod proxy;
pub(crate) mod stack;
pub(crate) mod world;

pub(crate) mod calling;
pub(crate) mod closing;
pub(crate) mod connecting;
pub(crate) mod discovering;
pub(crate) mod dropping;
pub(crate) mod enduring;
pub(crate) mod foreign;
pub(crate) mod foreign_answers;
pub(crate) mod foreign_calls;
pub(crate) mod proving;
pub(crate) mod refusing;
pub(crate) mod securing;
pub(crate) mod subscribing;

/// Hands the scenarios of connections to a macro, after what comes for that macro alone. They are for
/// whatever drives a machine over real sockets.
macro_rules! connection_scenarios {
    ($to:ident! $($first:tt)*) => {
        $to! { $($first)*
            connecting {
                every_strategy_connects_and_all_views_of_it_agree
                a_strategy_can_be_named_in_the_string
                one_connect_costs_three_tcp_connections_and_two_are_closed
                clients_spread_over_servers_that_have_as_many
                a_server_that_fails_every_check_captures_nobody
                a_dead_and_a_hanging_server_leave_the_third
                without_counts_and_reservations_a_client_connects_all_the_same
                servers_that_cannot_be_reached_are_all_named_with_the_cause
                a_client_that_was_started_tries_until_there_is_a_server
                an_html_page_in_place_of_the_check_is_a_failure_and_no_old_server
            }
            discovering {
                a_cluster_is_found_by_its_name
                what_is_added_and_removed_counts_from_the_next_reconnect_on
                a_lookup_that_fails_on_a_reconnect_uses_the_last_good_list
                what_is_wrong_with_a_name_server_is_told_apart
                a_name_server_with_weaknesses_is_served_its_way
                a_client_that_looks_servers_up_closes_promptly
                what_dnsmasq_serves_is_found
                what_knot_serves_is_found
            }
            refusing {
                an_incompatible_server_in_a_mixed_cluster_is_passed_over
                a_cluster_that_refuses_ends_the_connect_with_all_that_was_found
                a_connection_whose_servers_all_refuse_later_stops_for_good
                a_server_that_cannot_be_verified_is_refused_and_the_way_through_is_named
                an_older_server_is_compared_here_by_its_text_and_its_version
                an_older_server_without_endpoints_sends_its_first_keep_alive_late
            }
            dropping {
                a_killed_server_is_noticed_at_once_and_never_shown_as_connected
                silence_ends_a_session_after_five_seconds
                answers_into_the_void_end_a_session_after_five_seconds
                answers_that_fail_end_a_session_after_five_seconds
                a_server_that_knows_no_answers_keeps_its_session
                a_stream_that_the_server_ends_is_the_end_of_the_session
                a_server_that_goes_away_in_good_order_is_left_at_once
                a_client_comes_back_to_a_server_that_restarts
                a_rolling_restart_of_all_servers_is_survived_by_all_clients
                while_all_servers_are_down_a_client_tries_and_tells_why
                a_server_that_sends_no_first_keep_alive_is_never_connected
            }
            closing {
                close_is_prompt_in_every_phase_and_leaves_no_socket
                a_connect_that_is_dropped_midway_leaves_nothing
                a_connect_may_be_dropped_after_any_number_of_polls
                a_connection_that_nobody_holds_is_closed
            }
            enduring {
                a_flood_of_keep_alives_is_answered_by_and_by
            }
            foreign {
                a_session_outlives_every_timeout_of_a_proxy
                a_proxy_that_retires_connections_is_left_and_found_again
                a_proxy_that_reloads_is_found_again_at_once
                one_dead_and_one_hanging_proxy_leave_the_third
                a_dead_or_hanging_program_behind_a_proxy_is_told_by_status
                the_end_of_a_stream_comes_through_a_proxy
                a_proxy_that_dies_or_hangs_is_left
                all_proxies_may_be_restarted_one_after_the_other
                grpc_core_alone_is_enough_for_a_session
            }
            foreign_answers {
                counts_choose_among_proxies_and_strange_ones_do_not
                what_grpc_core_does_not_implement_is_done_without
                credentials_pass_a_proxy_and_refusals_are_understood
                a_token_endpoint_that_refuses_is_told_from_one_that_is_busy
                long_headers_pass_or_fail_with_a_reason
                a_proxy_without_http_2_is_told_as_such
            }
            proving {
                a_session_outlives_its_tokens_and_those_that_a_server_forgets
                a_refused_client_is_told_at_once_and_the_endpoint_is_asked_once
                an_endpoint_that_fails_is_survived_in_each_way
                a_redirect_of_the_token_endpoint_is_not_followed
            }
            securing {
                a_certificate_that_nobody_vouches_for_is_refused
                extra_roots_vouch_for_a_server_by_name_and_by_address
                what_is_wrong_with_the_tls_of_a_server_is_told_apart
                sessions_come_up_over_tls_1_2_and_1_3
                a_server_without_tls_is_told_as_such
                validation_asked_for_in_code_or_string_is_on
            }
            subscribing {
                the_first_subscriber_hears_all_and_the_second_what_follows
            }
        }
    };
}

/// The same with the scenarios that need what only adapters have: channels for application calls,
/// client certificates, subscriptions.
macro_rules! client_scenarios {
    ($to:ident! $($first:tt)*) => {
        $to! { $($first)*
            calling {
                whoever_sees_a_session_can_call_at_once
                unread_streams_and_many_calls_leave_the_session_alone
                transports_are_opened_as_streams_need_them
                a_thousand_calls_in_flight_end_at_once_with_their_server
                a_thousand_calls_of_which_most_wait_end_with_their_server_too
                a_channel_is_a_handle_and_a_call_is_none
                calls_on_a_closed_client_are_unavailable
                calls_on_a_silent_session_end_with_it
                without_a_session_calls_fail_at_once_or_wait_if_asked
                a_deadline_is_kept_by_the_client_itself
                metadata_of_the_caller_stays_and_the_api_key_is_added
                calls_go_to_the_server_of_the_session_that_is_up
                calls_dropped_at_any_moment_free_what_they_held
                a_duplex_call_goes_both_ways_and_ends_with_either_side
            }
            enduring {
                neither_a_flood_nor_slow_readers_stop_the_clocks
                a_network_that_carries_nothing_any_more_is_left
                clients_outlive_servers_that_fail_in_every_way
            }
            foreign_calls {
                calls_of_every_shape_pass_a_proxy
                calls_keep_to_the_limits_of_a_proxy
                each_call_ends_once_however_the_stack_ends
                a_call_with_an_old_token_is_sent_once_more_through_a_proxy
            }
            proving {
                a_token_goes_with_calls_of_every_shape_and_replaces_what_the_caller_left
                an_api_key_is_enough
                nothing_secret_goes_to_servers_that_were_not_chosen_or_not_trusted
                failover_keeps_the_token_and_renews_it_where_it_is_refused
                tokens_of_a_second_are_renewed_without_a_refused_call
                refused_calls_share_one_new_token_and_are_sent_once_more
                what_must_not_be_sent_twice_is_not
                a_call_is_refused_twice_at_most
            }
            securing {
                a_server_may_ask_for_a_client_certificate
            }
            subscribing {
                a_subscriber_that_does_not_read_holds_nothing_up_and_is_told_later
            }
        }
    };
}

/// Makes a test of each scenario: `$run` runs a future to its end on `$stack`, which the matrix calls
/// `$called`.
macro_rules! tests {
    ($called:literal, $stack:ty, $run:path: $($module:ident { $($name:ident)* })*) => {
        $(mod $module {
            $(#[test]
            fn $name() {
                let scenario = || $run($crate::scenarios::$module::$name::<$stack>());
                let names = (stringify!($module), stringify!($name));
                $crate::matrix::timed(names, $called, scenario);
            })*
        })*
    };
}
